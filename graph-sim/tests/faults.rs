//! The simulator misbehaves exactly as it is told.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{MAILBOX, Sender, error_code, http, mime, token_request};
use graph_sim::{Fault, GraphSim, Limits};

fn unlimited() -> Limits {
    Limits {
        messages: u64::MAX,
        ..Limits::default()
    }
}

#[tokio::test]
async fn a_fault_strikes_the_next_n_requests_of_its_mailbox_and_no_more() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    let fault = Fault::answer(503)
        .code("ErrorServerBusy")
        .retry_after("7")
        .retry_after("soon, 9");
    sim.inject(fault.mailbox("NEWS@example.com").times(2));

    let other = sender.post("other@example.com", mime("a@example.net"));
    assert_eq!(other.send().await.unwrap().status(), 202);
    for _ in 0..2 {
        let response = sender.send("a@example.net").await;
        let values: Vec<_> = response.headers().get_all("retry-after").iter().collect();
        assert_eq!(values, ["7", "soon, 9"]);
        assert_eq!(error_code(response).await, (503, "ErrorServerBusy".into()));
    }
    assert_eq!(sender.status("a@example.net").await, 202);
    assert_eq!(sim.report().mailbox(MAILBOX).faults, 2);
    assert_eq!(sim.report().mailbox(MAILBOX).accepted, 1);
}

#[tokio::test]
async fn a_share_strikes_about_that_share_the_same_for_the_same_seed() {
    let strikes = async |seed| {
        let sim = GraphSim::builder().limits(unlimited()).seed(seed).start().await;
        let sender = Sender::new(&sim).await;
        sim.inject(Fault::answer(500).share(0.25));
        let mut struck = Vec::new();
        for _ in 0..200 {
            struck.push(sender.status("a@example.net").await == 500);
        }
        struck
    };
    let (first, same, another) = (strikes(1).await, strikes(1).await, strikes(2).await);
    let count = first.iter().filter(|struck| **struck).count();
    assert!((30..=70).contains(&count), "{count}");
    assert_eq!(first, same);
    assert_ne!(first, another);
}

#[tokio::test]
async fn a_mail_that_is_accepted_before_the_error_is_there_and_counts() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    sim.inject(Fault::answer(504).code("UnknownError").after_accepting());
    let response = sender.send("a@example.net").await;
    assert_eq!(error_code(response).await, (504, "UnknownError".into()));
    sim.inject(Fault::reset().after_accepting());
    assert!(sender.post(MAILBOX, mime("b@example.net")).send().await.is_err());
    sim.inject(Fault::hang().after_accepting());
    let hung = sender
        .post(MAILBOX, mime("c@example.net"))
        .timeout(Duration::from_millis(200))
        .send()
        .await;
    assert!(hung.unwrap_err().is_timeout());
    assert_eq!(sim.messages().len(), 3);
    assert_eq!(sim.report().mailbox(MAILBOX).most_messages, 3);
}

#[tokio::test]
async fn a_mail_that_is_struck_before_it_is_accepted_is_not_there() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    sim.inject(Fault::answer(500));
    sim.inject(Fault::reset());
    sim.inject(Fault::hang());
    assert_eq!(sender.status("a@example.net").await, 500);
    assert!(sender.post(MAILBOX, mime("a@example.net")).send().await.is_err());
    let hung = sender
        .post(MAILBOX, mime("a@example.net"))
        .timeout(Duration::from_millis(200))
        .send()
        .await;
    assert!(hung.unwrap_err().is_timeout());
    assert!(sim.messages().is_empty());
}

#[tokio::test]
async fn a_reset_is_a_tcp_reset_before_and_after_the_body() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    let body = mime("a@example.net");
    let head = format!(
        "POST /v1.0/users/{MAILBOX}/sendMail HTTP/1.1\r\nHost: graph\r\nAuthorization: Bearer {}\r\n\
         Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        sender.token,
        body.len()
    );
    let read_error = |request: String| {
        let port = sim.port();
        tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            let result = stream.read_to_end(&mut answer);
            assert_eq!(answer, b"");
            result.map_err(|error| error.kind())
        })
    };
    // The head alone is enough for the first; the second waits for the whole body.
    sim.inject(Fault::reset().before_the_body());
    assert_eq!(
        read_error(head.clone()).await.unwrap(),
        Err(ErrorKind::ConnectionReset)
    );
    sim.inject(Fault::reset());
    assert_eq!(
        read_error(format!("{head}{body}")).await.unwrap(),
        Err(ErrorKind::ConnectionReset)
    );
    assert!(sim.messages().is_empty());
}

#[tokio::test]
async fn the_token_endpoint_misbehaves_apart_from_send_mail() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    sim.inject(Fault::answer(503).body("<html>").on_token());
    assert_eq!(sender.status("a@example.net").await, 202);
    let response = token_request(&http(), &sim.base_url()).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.text().await.unwrap(), "<html>");
    assert_eq!(
        token_request(&http(), &sim.base_url())
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
}

#[tokio::test]
async fn delays_hold_answers_up_within_their_range() {
    let sim = GraphSim::builder().latency(300..=350).start().await;
    let sender = Sender::new(&sim).await;
    let timed_ms = async || {
        let start = Instant::now();
        assert_eq!(sender.status("a@example.net").await, 202);
        start.elapsed().as_millis()
    };
    let standing = timed_ms().await;
    assert!((299..2_000).contains(&standing), "{standing}");
    sim.inject(Fault::slow(300..=300));
    assert!(timed_ms().await >= 599);
    sim.set_latency(0..=0);
    assert!(timed_ms().await < 299);
}

#[tokio::test]
async fn all_of_it_can_be_told_over_http() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    let post = async |path: &str, json: &str| {
        let request = sender.http.post(format!("{}/sim/{path}", sim.base_url()));
        let request = request
            .header("content-type", "application/json")
            .body(json.to_owned());
        request.send().await.unwrap().status().as_u16()
    };
    let fault = r#"{"times": 2, "then": {"answer": {"status": 503, "retry_after": ["120"]}}}"#;
    assert_eq!(post("faults", fault).await, 204);
    let response = sender.send("a@example.net").await;
    assert_eq!(response.headers()["retry-after"], "120");
    assert_eq!(response.status(), 503);
    let cleared = sender
        .http
        .delete(format!("{}/sim/faults", sim.base_url()))
        .send()
        .await
        .unwrap();
    assert_eq!(cleared.status(), 204);
    assert_eq!(sender.status("a@example.net").await, 202);

    assert_eq!(post("latency", r#"{"min_ms": 60, "max_ms": 60}"#).await, 204);
    let start = Instant::now();
    assert_eq!(sender.status("a@example.net").await, 202);
    assert!(start.elapsed() >= Duration::from_millis(59));
    assert_eq!(post("advance", r#"{"ms": 3600000}"#).await, 204);
    assert_eq!(
        sender.status("a@example.net").await,
        401,
        "an hour on, the token has expired"
    );

    for wrong in [
        r#"{"then": "explode"}"#,
        r#"{"then": "reset", "tiems": 3}"#,
        r#"{"then": "reset", "share": 0}"#,
        r#"{"then": "reset", "share": 1.5}"#,
        r#"{"then": {"answer": {"status": 700}}}"#,
        r#"{"then": {"answer": {"status": 500, "retry_after": ["1\n2"]}}}"#,
        r#"{"then": "proceed", "delay": {"min_ms": 2, "max_ms": 1}}"#,
    ] {
        assert!((400..500).contains(&post("faults", wrong).await), "{wrong}");
    }
    let report: graph_sim::Report = http()
        .get(format!("{}/sim/report", sim.base_url()))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(report, sim.report());
    assert_eq!(report.mailbox(MAILBOX).accepted, 2);
}

#[tokio::test]
async fn a_simulator_that_is_dropped_closes_its_port_and_what_hangs() {
    let sim = GraphSim::builder().start().await;
    let sender = Sender::new(&sim).await;
    sim.inject(Fault::hang());
    let hanging = tokio::spawn(sender.post(MAILBOX, mime("a@example.net")).send());
    while sim.report().mailbox(MAILBOX).faults == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    drop(sim);
    let ended = tokio::time::timeout(Duration::from_secs(5), hanging).await;
    assert!(ended.expect("the connection ends").unwrap().is_err());
    assert!(
        sender
            .post(MAILBOX, mime("a@example.net"))
            .send()
            .await
            .unwrap_err()
            .is_connect()
    );
}
