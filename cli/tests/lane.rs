//! `mailrl send --bulk` and `--urgent`.

mod common;

use common::*;

/// A minute of ten messages of which bulk mail may use eight, and mails in it.
async fn setup() -> Setup {
    let setup = Setup::with(["window", "rolling", "per-minute", "10"], sim()).await;
    for nth in 0..10 {
        setup.mail(&format!("plain{nth}.eml"));
        let mail = mail("newsletter").replace("Subject", "Precedence: bulk\r\nSubject");
        setup.file(&format!("bulk{nth}.eml"), mail);
    }
    setup
}

async fn sent(flag: Option<&str>, kind: &str) -> usize {
    let setup = setup().await;
    let files = (0..10).map(|nth| format!("{kind}{nth}.eml"));
    let run = setup.send(flag.map(String::from).into_iter().chain(files)).await;
    let sent = setup.arrived().len();
    run.ends_with(if sent == 10 { 0 } else { 3 });
    sent
}

#[tokio::test]
async fn bulk_leaves_the_last_part_of_the_minute_to_other_mail() {
    assert_eq!(sent(None, "plain").await, 10);
    assert_eq!(sent(Some("--bulk"), "plain").await, 8);
}

#[tokio::test]
async fn urgent_goes_before_what_the_mail_says() {
    assert_eq!(sent(None, "bulk").await, 8);
    assert_eq!(sent(Some("--urgent"), "bulk").await, 10);
}

#[tokio::test]
async fn a_mail_is_not_both() {
    let setup = setup().await;
    setup
        .send(["--bulk", "--urgent", "plain0.eml"])
        .await
        .ends_with(2)
        .says("cannot be used with");
}
