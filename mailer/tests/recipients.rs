//! Everybody in the envelope gets the mail, and nobody else.

mod common;

use common::{MAILBOX, envelope, mail, mailer, sample, sim};
use graph_sim::GraphSim;
use lettre::address::{Address, Envelope};
use lettre::{AsyncTransport, Message};
use mailrl_client::{MailOutcome, SendFailure};
use mailrl_mailer::{GraphError, MicrosoftGraphMailer};

fn sorted(mut recipients: Vec<String>) -> Vec<String> {
    recipients.sort_unstable();
    recipients
}

#[track_caller]
fn assert_refused(error: &GraphError, words: &str) {
    assert!(error.is_mail(), "{error}");
    assert_eq!(error.mail_outcome(), MailOutcome::NotSent);
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test]
async fn a_message_of_lettre_reaches_its_bcc_too() {
    let sim = sim().start().await;
    let message = Message::builder()
        .from("News <news@example.com>".parse().unwrap())
        .to("To <to@example.net>".parse().unwrap())
        .cc("cc@example.net".parse().unwrap())
        .bcc("hidden@example.net".parse().unwrap())
        .subject("Hello")
        .body(String::from("Hello."))
        .unwrap();
    let rest = message.formatted();
    mailer(&sim).send(message).await.unwrap();
    let [stored] = sim.messages().try_into().unwrap();
    assert_eq!(stored.mailbox, MAILBOX);
    assert_eq!(
        stored.recipients,
        ["to@example.net", "cc@example.net", "hidden@example.net"]
    );
    let raw = stored.raw.unwrap();
    assert_eq!(raw.strip_prefix(b"Bcc: hidden@example.net\r\n"), Some(&*rest));
}

#[tokio::test]
async fn a_mail_with_bcc_only_goes_out_as_it_is_and_repeats_are_counted() {
    let sim = sim().start().await;
    let mail = sample("bcc-only-no-message-id.eml");
    let envelope = envelope(&["a@example.net", "B@example.net", "b@example.net"]);
    mailer(&sim).send_raw(&envelope, &mail).await.unwrap();
    let [stored] = sim.messages().try_into().unwrap();
    assert_eq!(
        stored.recipients,
        ["a@example.net", "B@example.net", "b@example.net"]
    );
    assert_eq!(stored.raw.unwrap(), mail);
    assert_eq!(sim.report().mailbox(MAILBOX).recipients, 3);
}

#[tokio::test]
async fn a_hundred_and_twenty_recipients_count_as_that_in_the_headers_or_in_the_envelope_only() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    let named = |name: &'static str, count| (0..count).map(move |n| (name, n));
    let to = named("deelnemer", 40).map(|(name, n)| format!("{name}{n:03}@example.net"));
    let cc = named("team", 10).map(|(name, n)| format!("{name}{n}@example.org"));
    let bcc = named("archief", 70).map(|(name, n)| format!("{name}{n:02}@example.org"));
    let all = sorted(to.chain(cc).chain(bcc).collect());
    assert_eq!(all.len(), 120);
    let recipients: Vec<_> = all.iter().map(String::as_str).collect();
    mailer
        .send_raw(&envelope(&recipients), &sample("update-120-recipients.eml"))
        .await
        .unwrap();
    let bare = format!("From: {MAILBOX}\r\nSubject: Update\r\n\r\nHello.\r\n");
    mailer
        .send_raw(&envelope(&recipients), bare.as_bytes())
        .await
        .unwrap();
    let [headers, envelope_only] = sim.messages().try_into().unwrap();
    assert_eq!(sorted(headers.recipients), all);
    assert_eq!(sorted(envelope_only.recipients), all);
    assert_eq!(sim.report().mailbox(MAILBOX).recipients, 240);
}

#[tokio::test]
async fn every_sample_reaches_exactly_its_envelope_with_its_bytes_unchanged() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    for name in ["000", "003", "005", "006", "007"].map(|name| format!("{name}.eml")) {
        assert_reaches(&sim, &mailer, &name, "recipient@example.com").await;
    }
    assert_reaches(&sim, &mailer, "009.eml", "someone@example.com").await;
    assert_reaches(&sim, &mailer, "alert-urgent.eml", "ops@example.com").await;
    assert_reaches(&sim, &mailer, "invite-utf8.eml", "een@example.net").await;
    for name in ["000", "005", "012", "018"].map(|name| format!("malformed-{name}.eml")) {
        assert_reaches(&sim, &mailer, &name, "one@example.net").await;
    }
}

async fn assert_reaches(sim: &GraphSim, mailer: &MicrosoftGraphMailer, name: &str, in_headers: &str) {
    let mail = sample(name);
    mailer
        .send_raw(&envelope(&[in_headers, "zoe@example.net"]), &mail)
        .await
        .unwrap();
    let stored = sim.messages().pop().unwrap();
    assert_eq!(
        sorted(stored.recipients),
        [in_headers, "zoe@example.net"],
        "{name}"
    );
    assert!(stored.raw.unwrap().ends_with(&mail), "{name}");
}

#[tokio::test]
async fn who_is_not_in_the_envelope_gets_nothing() {
    let sim = sim().start().await;
    let mail = format!(
        "To: a@example.net\r\nCc: Extra <extra@example.net>\r\n{}",
        "\r\nHello."
    );
    let error = mailer(&sim)
        .send_raw(&envelope(&["a@example.net"]), mail.as_bytes())
        .await
        .unwrap_err();
    assert_refused(&error, "extra@example.net");
    assert!(sim.messages().is_empty());
    assert_eq!(sim.report().token_requests, 0, "it is refused before any request");
}

#[tokio::test]
async fn a_mail_without_a_sender_is_refused() {
    let sim = sim().start().await;
    let envelope = Envelope::new(None, vec!["a@example.net".parse().unwrap()]).unwrap();
    let error = mailer(&sim)
        .send_raw(&envelope, &mail("Hello"))
        .await
        .unwrap_err();
    assert_refused(&error, "no sender");
}

#[tokio::test]
async fn a_mailbox_with_unusual_characters_is_addressed_as_it_is() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    for user in [
        "o'hara+news",
        "a/b",
        "50%off",
        "q?x=1#y",
        "\"a b\"",
        "ünïcode",
        "\\..\\",
    ] {
        let sender = Address::new_dangerous(user, "example.com");
        let envelope = Envelope::new(Some(sender), vec!["a@example.net".parse().unwrap()]).unwrap();
        mailer.send_raw(&envelope, &mail("Hello")).await.unwrap();
        assert_eq!(
            sim.messages().pop().unwrap().mailbox,
            format!("{user}@example.com")
        );
    }
}

#[tokio::test]
async fn a_mail_is_refused_before_the_request_when_graph_would_not_take_its_size() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    let largest = 4 * 1024 * 1024 / 4 * 3;
    let mut mail = mail("Large");
    mail.resize(largest, b'x');
    mailer
        .send_raw(&envelope(&["a@example.net"]), &mail)
        .await
        .unwrap();
    assert_eq!(sim.messages()[0].size, largest);

    mail.push(b'x');
    let error = mailer
        .send_raw(&envelope(&["a@example.net"]), &mail)
        .await
        .unwrap_err();
    assert_refused(&error, "4194304");
    assert_eq!(sim.report().mailbox(MAILBOX).rejected, 0);
}
