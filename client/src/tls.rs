//! Redis over TLS: the cryptography, and whose certificates are trusted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redis::{Client, ConnectionAddr, IntoConnectionInfo, RedisResult, TlsCertificates};

/// A client of the Redis at this address; over TLS it trusts the certificates that the system trusts.
///
/// redis-rs does so only as long as no crate of the program turns its feature
/// `tls-rustls-webpki-roots` on, which `BullMQ`'s does.
pub fn open_redis(address: impl IntoConnectionInfo) -> RedisResult<Client> {
    let info = address.into_connection_info()?;
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        return Client::open(info);
    }
    provide_cryptography();
    let certificates = TlsCertificates {
        client_tls: None,
        root_cert: Some(trusted_certificates()),
    };
    Client::build_with_tls(info, certificates)
}

/// The certificates that the system trusts (or those in `SSL_CERT_FILE` and `SSL_CERT_DIR`), in PEM.
#[must_use]
pub fn trusted_certificates() -> Vec<u8> {
    // One that cannot be read is missed when a server shows it, and the error says so then.
    let found = rustls_native_certs::load_native_certs().certs;
    let pem = found.iter().map(|certificate| {
        let text = STANDARD.encode(certificate);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    });
    pem.collect::<String>().into_bytes()
}

/// Chooses rustls's cryptography for the process, unless one was chosen before: rustls panics on its
/// first connection if a program brings two implementations and chose none.
pub(crate) fn provide_cryptography() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
