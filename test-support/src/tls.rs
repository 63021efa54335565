//! A server that is reached over TLS.

use std::path::Path;
use std::process::Command;

use crate::{RedisServer, free_port};

impl RedisServer {
    /// A server that is also reached over TLS, and its address there. Its certificate, which stands in
    /// this folder as `certificate.pem`, only those trust who are told to.
    ///
    /// # Panics
    /// If there is no openssl.
    #[must_use]
    pub fn over_tls(folder: &Path) -> (Self, String) {
        make_certificate(folder);
        let port = free_port();
        let file = |name: &str| folder.join(name).display().to_string();
        let server = Self::builder()
            .arguments(["--tls-port", &port.to_string()])
            .arguments(["--tls-cert-file", &file("certificate.pem")])
            .arguments(["--tls-key-file", &file("key.pem")])
            .arguments(["--tls-auth-clients", "no"])
            .start();
        (server, format!("rediss://127.0.0.1:{port}"))
    }
}

fn make_certificate(folder: &Path) {
    let made = Command::new("openssl")
        .current_dir(folder)
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"])
        .args(["-subj", "/CN=127.0.0.1"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .output()
        .expect("openssl (apt-get install openssl)");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
