//! What `sendMail` and the token endpoint accept, refuse and throttle.

mod common;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{MAILBOX, Sender, error_code, http, mime, token_request};
use graph_sim::{Fault, GraphSim, Limits};
use serde_json::Value;

#[tokio::test]
async fn an_accepted_mail_is_kept_with_what_it_says() {
    let sim = GraphSim::builder().keep_raw(true).start().await;
    let sender = Sender::new(&sim).await;
    let response = sender
        .post("News%40Example.com", mime("a@example.net, A@example.net"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 202);
    assert_eq!(response.headers()["request-id"].len(), 36);
    assert_eq!(response.text().await.unwrap(), "");

    let [message] = sim.messages().try_into().unwrap();
    assert_eq!(message.mailbox, MAILBOX);
    assert_eq!(message.recipients, ["a@example.net", "A@example.net"]);
    assert_eq!(message.subject, "Hello");
    assert!(message.raw.unwrap().starts_with(b"From: news@example.com\r\n"));

    let url = format!("{}/sim/messages?mailbox={MAILBOX}", sim.base_url());
    let listed: Value = http().get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(listed[0]["recipients"][1], "A@example.net");
    let url = format!("{}/sim/messages?mailbox=other@example.com", sim.base_url());
    let listed: Value = http().get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(listed, Value::Array(vec![]));
}

#[tokio::test]
async fn rubbish_is_refused_and_counts_for_nothing() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    let refusal = async |body: String| error_code(sender.post(MAILBOX, body).send().await.unwrap()).await;

    assert_eq!(
        refusal("To: a@example.net\r\n\r\n".into()).await,
        (400, "ErrorMimeContentInvalidBase64String".into())
    );
    assert_eq!(
        refusal(STANDARD.encode("Subject: x\r\n\r\n")).await,
        (400, "ErrorInvalidRecipients".into())
    );
    let json = sender
        .post(MAILBOX, "{}".into())
        .header("content-type", "application/json");
    assert_eq!(json.send().await.unwrap().status(), 400);
    assert_eq!(sim.report().mailbox(MAILBOX).rejected, 3);
    assert_eq!(sim.report().mailbox(MAILBOX).most_messages, 0);
    assert!(sim.messages().is_empty());
}

#[tokio::test]
async fn the_largest_body_is_4_mib_to_the_byte() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    let head = "From: news@example.com\r\nTo: a@example.net\r\n\r\n";
    let limit = 4 * 1024 * 1024;
    let largest = STANDARD.encode(format!("{head}{}", "x".repeat(limit / 4 * 3 - head.len())));
    assert_eq!(largest.len(), limit);

    let response = sender.post(MAILBOX, format!("{largest}\n")).send().await.unwrap();
    assert_eq!(error_code(response).await, (413, "RequestEntityTooLarge".into()));
    assert_eq!(sender.post(MAILBOX, largest).send().await.unwrap().status(), 202);
}

#[tokio::test]
async fn without_a_good_token_nothing_is_sent() {
    let sim = GraphSim::builder()
        .token_lifetime(Duration::from_mins(10))
        .start()
        .await;
    let mut sender = Sender::new(&sim).await;
    sim.advance(Duration::from_secs(599));
    assert_eq!(sender.status("a@example.net").await, 202);
    sim.advance(Duration::from_secs(1));
    let expired = sender.send("a@example.net").await;
    assert_eq!(
        error_code(expired).await,
        (401, "InvalidAuthenticationToken".into())
    );

    sender = Sender::new(&sim).await;
    assert_eq!(sender.status("a@example.net").await, 202);
    sim.revoke_tokens();
    assert_eq!(sender.status("a@example.net").await, 401);
    sender.token = String::new();
    assert_eq!(sender.status("a@example.net").await, 401);
    assert_eq!(sim.messages().len(), 2);
}

#[tokio::test]
async fn only_the_configured_client_gets_a_token_for_the_right_scope() {
    let sim = GraphSim::builder().client("app", "secret").start().await;
    let http = http();
    let url = format!("{}/tenant/oauth2/v2.0/token", sim.base_url());
    let good = [
        ("grant_type", "client_credentials"),
        ("client_id", "app"),
        ("client_secret", "secret"),
        ("scope", "https://graph.microsoft.com/.default"),
    ];
    let answer = token_request(&http, &sim.base_url()).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["token_type"], "Bearer");
    assert_eq!(answer["expires_in"], 3599);

    let wrong = [
        (0, "password", 400, "unsupported_grant_type"),
        (1, "another", 400, "unauthorized_client"),
        (2, "guess", 401, "invalid_client"),
        (3, "https://graph.microsoft.com/Mail.Send", 400, "invalid_scope"),
    ];
    for (field, value, status, error) in wrong {
        let mut form = good;
        form[field].1 = value;
        let response = http.post(&url).form(&form).send().await.unwrap();
        assert_eq!(response.status(), status, "{error}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"], error);
        assert!(!body.to_string().contains("guess"));
    }
    assert_eq!(sim.report().token_requests, 5);
}

#[tokio::test]
async fn the_31st_message_within_a_minute_is_throttled_and_goes_through_a_minute_later() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    for _ in 0..30 {
        assert_eq!(sender.status("a@example.net, b@example.net").await, 202);
    }
    sim.advance(Duration::from_secs(29));
    let response = sender.send("a@example.net").await;
    let wait: u64 = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((30..=31).contains(&wait), "{wait}");
    assert_eq!(error_code(response).await, (429, "ApplicationThrottled".into()));

    let other = sender.post("other@example.com", mime("a@example.net"));
    assert_eq!(
        other.send().await.unwrap().status(),
        202,
        "another mailbox has its own budget"
    );
    sim.advance(Duration::from_secs(wait));
    assert_eq!(sender.status("a@example.net").await, 202);

    let report = sim.report().mailbox(MAILBOX);
    assert_eq!(
        (report.accepted, report.recipients, report.throttled_messages),
        (31, 61, 1)
    );
    assert_eq!((report.most_messages, report.most_recipients), (30, 61));
}

#[tokio::test]
async fn recipients_of_24_hours_are_counted_with_repeats() {
    let limits = Limits {
        recipients: 5,
        ..Limits::default()
    };
    let sim = GraphSim::builder().limits(limits).start().await;
    let sender = Sender::new(&sim).await;
    assert_eq!(
        sender.status("a@example.net, a@example.net, b@example.net").await,
        202
    );
    sim.advance(Duration::from_mins(30));
    let response = sender.send("a@example.net, b@example.net, c@example.net").await;
    assert_eq!(response.status(), 429);
    let wait: u64 = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((84_599..=84_600).contains(&wait), "{wait}");
    assert_eq!(sender.status("a@example.net, b@example.net").await, 202);
    let report = sim.report().mailbox(MAILBOX);
    assert_eq!((report.throttled_recipients, report.most_recipients), (1, 5));
}

#[tokio::test]
async fn the_fifth_request_at_once_is_throttled_and_a_place_comes_free_with_each_answer() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    sim.inject(Fault::hang().times(3));
    sim.inject(Fault::slow(400..=400));
    let hanging: Vec<_> = (0..4)
        .map(|_| tokio::spawn(sender.post(MAILBOX, mime("a@example.net")).send()))
        .collect();
    while sim.report().mailbox(MAILBOX).faults < 4 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let fifth = sender.send("a@example.net").await;
    assert_eq!(fifth.headers()["retry-after"], "1");
    assert_eq!(error_code(fifth).await, (429, "ApplicationThrottled".into()));

    while sim.messages().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(sender.status("a@example.net").await, 202);
    let report = sim.report().mailbox(MAILBOX);
    assert_eq!(
        (report.throttled_concurrent, report.most_requests, report.accepted),
        (1, 5, 2)
    );

    // A client that goes away gives its place back.
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
    tokio::time::sleep(Duration::from_millis(100)).await;
    sim.inject(Fault::slow(200..=200).times(4));
    let again = (0..4).map(|_| tokio::spawn(sender.post(MAILBOX, mime("a@example.net")).send()));
    for request in again.collect::<Vec<_>>() {
        assert_eq!(request.await.unwrap().unwrap().status(), 202);
    }
}
