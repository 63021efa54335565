//! What lettre's SMTP errors say about the mail, against a server that goes wrong at a given step.

use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use mailrl_client::{MailOutcome, SendFailure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// What the server does at the step where it goes wrong.
#[derive(Clone, Copy)]
enum Fault {
    Answer(&'static str),
    HangUp,
}

/// Sends to a server that goes wrong when a line begins with this (a single dot ends the content).
async fn send_to_server_that_fails_at(step: &'static str, fault: Fault) -> Error {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220 ready\r\n").await.unwrap();
        let mut in_content = false;
        let mut line = String::new();
        while matches!(stream.read_line(&mut line).await, Ok(1..)) {
            let at_step = line.trim_end().starts_with(step);
            let answer = match line.trim_end() {
                _ if at_step => match fault {
                    Fault::Answer(answer) => answer,
                    Fault::HangUp => return,
                },
                "." => "250 accepted",
                _ if in_content => "",
                "DATA" => "354 go on",
                _ => "250 fine",
            };
            in_content = answer.starts_with("354") || in_content && line.trim_end() != ".";
            line.clear();
            if !answer.is_empty() {
                let _ = stream.write_all(format!("{answer}\r\n").as_bytes()).await;
            }
        }
    });
    let error = send(port).await;
    serving.abort();
    error
}

async fn send(port: u16) -> Error {
    let mailer = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous("127.0.0.1")
        .port(port)
        .build();
    let to = vec!["b@example.net".parse().unwrap()];
    let envelope = Envelope::new(Some("a@example.net".parse().unwrap()), to).unwrap();
    let sent = mailer
        .send_raw(&envelope, b"Subject: test\r\n\r\nhello\r\n")
        .await;
    sent.expect_err("a failure")
}

#[tokio::test]
async fn a_negative_answer_means_that_nothing_was_sent() {
    for step in ["MAIL", "RCPT", "DATA", "."] {
        for answer in ["451 later", "550 never"] {
            let error = send_to_server_that_fails_at(step, Fault::Answer(answer)).await;
            assert_eq!(error.mail_outcome(), MailOutcome::NotSent, "{step}: {error}");
            let is_permanent = SendFailure::is_permanent(&error);
            assert_eq!(is_permanent, answer.starts_with('5'), "{step}: {error}");
        }
    }
}

#[tokio::test]
async fn a_network_that_fails_after_the_content_leaves_it_open() {
    for fault in [Fault::HangUp, Fault::Answer("what?")] {
        let error = send_to_server_that_fails_at(".", fault).await;
        assert_eq!(error.mail_outcome(), MailOutcome::Unknown, "{error}");
    }
}

#[tokio::test]
async fn a_refused_connection_means_that_nothing_was_sent() {
    let error = send(test_support::free_port()).await;
    assert_eq!(error.mail_outcome(), MailOutcome::NotSent, "{error}");
}
