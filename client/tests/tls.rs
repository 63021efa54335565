//! Redis over TLS, as managed ones want it.

mod support;

use std::path::Path;
use std::process::Command;

use mailrl_client::{Decision, FailOpenCause};
use support::{is_answered_without_module, patient_limiter, sooner_or_later};
use test_support::{RedisServer, free_port};

/// Names the server for the test that runs in a process of its own.
const URL: &str = "MAILRL_TEST_TLS_URL";

/// A certificate for 127.0.0.1 that only those trust who are told to.
fn make_certificate(directory: &Path) {
    let made = Command::new("openssl")
        .current_dir(directory)
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args(["-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .output()
        .expect("openssl (apt-get install openssl)");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn server_with_tls(directory: &Path) -> (RedisServer, String) {
    make_certificate(directory);
    let port = free_port();
    let file = |name: &str| directory.join(name).display().to_string();
    let server = RedisServer::builder()
        .arguments(["--tls-port", &port.to_string()])
        .arguments(["--tls-cert-file", &file("certificate.pem")])
        .arguments(["--tls-key-file", &file("key.pem")])
        .arguments(["--tls-auth-clients", "no"])
        .start();
    (server, format!("rediss://127.0.0.1:{port}"))
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_fails_open() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, url) = server_with_tls(directory.path());
    sooner_or_later(&patient_limiter(&url), |decision| {
        matches!(decision, Decision::FailOpen(failure)
            if failure.cause == FailOpenCause::Unreachable && failure.error.contains("certificate"))
    })
    .await;
}

#[test]
fn a_certificate_that_the_system_trusts_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, url) = server_with_tls(directory.path());
    // What the system trusts is an environment variable, so the client runs in a process of its own.
    let client = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client_in_a_process_of_its_own", "--ignored"])
        .env("SSL_CERT_FILE", directory.path().join("certificate.pem"))
        .env_remove("SSL_CERT_DIR")
        .env(URL, url)
        .output()
        .unwrap();
    assert!(
        client.status.success(),
        "{}",
        String::from_utf8_lossy(&client.stdout)
    );
}

#[tokio::test]
#[ignore = "run by a_certificate_that_the_system_trusts_is_taken"]
async fn client_in_a_process_of_its_own() {
    let url = std::env::var(URL).expect("started by the other test");
    // The server has no module; that it says so shows that it was reached.
    sooner_or_later(&patient_limiter(&url), is_answered_without_module).await;
}
