//! `SendGrid` by the factory, against a real SMTP server: what became of each mail, and never Redis.

mod common;
#[path = "common/smtp.rs"]
mod smtp;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use common::{MAILBOX, envelope, eventually, mail};
use mailrl_client::Mailbox;
use mailrl_mailer::config::MailConfig;
use mailrl_mailer::write_ahead::{NotRecorded, scope};
use mailrl_mailer::{Mailer, MailerError, MailerFactory};
use smtp::{Fault, SmtpServer};
use tempfile::TempDir;

const API_KEY: &str = "SG.hunter2";

struct Setup {
    factory: MailerFactory,
    /// In place of Redis: it notices every connection.
    redis: TcpListener,
    _folder: TempDir,
}

impl Setup {
    /// A tenant and a mailbox that send through this port, unencrypted.
    fn on_port(port: u16) -> Self {
        Self::with_tls(port, "none")
    }

    fn with_tls(port: u16, tls: &str) -> Self {
        let redis = TcpListener::bind("127.0.0.1:0").unwrap();
        redis.set_nonblocking(true).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), format!("{API_KEY}\n")).unwrap();
        let account = format!(
            "api_key_file = 'key'\nhost = '127.0.0.1'\nport = {port}\ntls = '{tls}'\ntimeout_s = 1\n"
        );
        let text = format!(
            "[redis]\nurl = 'redis://{}'\n\
             [sendgrid]\n{account}\
             [mailbox.'{MAILBOX}']\nprovider = 'sendgrid'\n\
             [tenant.globex]\nprovider = 'sendgrid'\n{account}",
            redis.local_addr().unwrap()
        );
        let path = folder.path().join("mailrl.toml");
        std::fs::write(&path, text).unwrap();
        Self {
            factory: MailerFactory::watch(move || MailConfig::read(&path)).unwrap(),
            redis,
            _folder: folder,
        }
    }

    fn mailer(&self) -> Mailer {
        self.factory.get_mailer("globex").unwrap()
    }

    async fn send(&self) -> Result<(), MailerError> {
        send(&self.mailer()).await
    }
}

async fn send(mailer: &Mailer) -> Result<(), MailerError> {
    mailer
        .send_raw(&envelope(&["a@example.net", "b@example.net"]), &mail("Hello"))
        .await
}

async fn error_at(step: &'static str, fault: Fault) -> MailerError {
    let server = SmtpServer::that_fails_at(step, fault).await;
    Setup::on_port(server.port).send().await.unwrap_err()
}

#[tokio::test]
async fn a_mail_is_sent_with_the_api_key_and_redis_is_never_asked() {
    let server = SmtpServer::new().await;
    let setup = Setup::on_port(server.port);
    let of_mailbox = setup
        .factory
        .get_mailer_for_system_mailbox(&Mailbox::new(MAILBOX))
        .unwrap();
    for mailer in [setup.mailer(), of_mailbox] {
        send(&mailer).await.unwrap();
    }
    assert_eq!(server.mails(), 2);
    let lines = server.lines();
    // What `printf '\0apikey\0SG.hunter2' | base64` makes.
    assert!(
        lines.contains(&"AUTH PLAIN AGFwaWtleQBTRy5odW50ZXIy".to_owned()),
        "{lines:?}"
    );
    for line in [
        "MAIL FROM:<news@example.com>",
        "RCPT TO:<b@example.net>",
        "Subject: Hello",
        "QUIT",
    ] {
        assert!(lines.iter().any(|seen| seen == line), "{line}: {lines:?}");
    }
    eventually("it takes its leave", || {
        server.lines().contains(&"QUIT".to_owned())
    })
    .await;
    let asked = setup.redis.accept();
    assert_eq!(asked.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn what_is_refused_for_good_is_not_tried_again_and_what_is_refused_for_now_is() {
    for step in ["MAIL", "RCPT", "DATA", "."] {
        let error = error_at(step, Fault::Answer("550 never")).await;
        assert!(matches!(error, MailerError::Refused(_)), "{step}: {error:?}");
        let error = error_at(step, Fault::Answer("451 later")).await;
        assert!(matches!(error, MailerError::NotSent(_)), "{step}: {error:?}");
    }
}

#[tokio::test]
async fn before_the_server_is_ready_nothing_was_sent_whatever_happens() {
    for (step, fault) in [
        ("", Fault::Silence),
        ("", Fault::HangUp),
        ("EHLO", Fault::Silence),
        ("AUTH", Fault::HangUp),
        ("AUTH", Fault::Silence),
        // The key is wrong, not the mail: it may be mended.
        ("AUTH", Fault::Answer("535 who are you")),
    ] {
        let error = error_at(step, fault).await;
        assert!(matches!(error, MailerError::NotSent(_)), "{step}: {error:?}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    let setup = Setup::on_port(test_support::free_port());
    let error = setup.send().await.unwrap_err();
    assert!(matches!(error, MailerError::NotSent(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_that_falls_silent_over_the_mail_may_have_it_and_is_not_waited_for_longer_than_told() {
    for (step, fault) in [
        (".", Fault::Silence),
        ("DATA", Fault::Silence),
        (".", Fault::HangUp),
    ] {
        let waiting = tokio::time::timeout(Duration::from_secs(20), error_at(step, fault));
        let error = waiting.await.expect("a time limit of 1 s");
        assert!(matches!(error, MailerError::Unknown(_)), "{step}: {error:?}");
    }
}

#[tokio::test]
async fn after_a_mail_that_was_dropped_half_way_the_next_one_goes_out_whole() {
    let server = SmtpServer::that_fails_at("RCPT TO:<slow", Fault::Silence).await;
    let setup = Setup::on_port(server.port);
    let mailer = setup.mailer();
    let (to, content) = (envelope(&["slow@example.net"]), mail("Slow"));
    let slow = mailer.send_raw(&to, &content);
    let dropped = tokio::time::timeout(Duration::from_millis(200), slow);
    assert!(dropped.await.is_err());
    setup.send().await.unwrap();
    assert_eq!(server.mails(), 1);
}

#[tokio::test]
async fn a_mail_whose_record_cannot_be_written_is_not_sent() {
    let server = SmtpServer::new().await;
    let setup = Setup::on_port(server.port);
    let refuse = Arc::new(|| -> futures_util::future::BoxFuture<'static, _> {
        Box::pin(async { Err(NotRecorded("no Redis".into())) })
    });
    let error = scope(refuse, setup.send()).await.unwrap_err();
    assert!(matches!(error, MailerError::NotTried(_)), "{error:?}");
    assert!(server.lines().is_empty());
}

#[tokio::test]
async fn a_server_without_encryption_gets_neither_key_nor_mail() {
    for tls in ["implicit", "starttls"] {
        let server = SmtpServer::new().await;
        let error = Setup::with_tls(server.port, tls).send().await.unwrap_err();
        assert!(matches!(error, MailerError::NotSent(_)), "{tls}: {error:?}");
        let lines = server.lines();
        let told = lines
            .iter()
            .any(|line| line.starts_with("AUTH") || line.starts_with("MAIL"));
        assert!(!told, "{tls}: {lines:?}");
    }
}
