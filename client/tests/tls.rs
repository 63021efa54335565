//! Redis over TLS, as managed ones want it.

mod support;

use std::process::Command;

use mailrl_client::{Decision, FailOpenCause};
use support::{is_answered_without_module, patient_limiter, sooner_or_later};
use test_support::RedisServer;

/// Names the server for the test that runs in a process of its own.
const URL: &str = "MAILRL_TEST_TLS_URL";

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_fails_open() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, url) = RedisServer::over_tls(directory.path());
    sooner_or_later(&patient_limiter(&url), |decision| {
        matches!(decision, Decision::FailOpen(failure)
            if failure.cause == FailOpenCause::Unreachable && failure.error.contains("certificate"))
    })
    .await;
}

#[test]
fn a_certificate_that_the_system_trusts_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, url) = RedisServer::over_tls(directory.path());
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
