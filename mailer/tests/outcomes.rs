//! What became of the mail, for everything that can happen to its request.

mod common;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use common::{Canned, Frozen, MAILBOX, builder, mailer, nobody, outcome, send, sim};
use graph_sim::Fault;
use mailrl_client::MailOutcome::{NotSent, Throttled, Unknown};
use mailrl_client::{MailOutcome, SendFailure};

fn throttled(seconds: f64) -> MailOutcome {
    Throttled {
        retry_after: Duration::from_secs_f64(seconds),
    }
}

#[tokio::test]
async fn a_202_is_success_with_graphs_request_id_whatever_else_it_says() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    assert_eq!(send(&mailer).await.unwrap().request_id.unwrap().len(), 36);
    sim.inject(Fault::answer(202).retry_after("30").after_accepting());
    sim.inject(Fault::answer(202).code("UnknownError").after_accepting());
    send(&mailer).await.unwrap();
    send(&mailer).await.unwrap();
    assert_eq!(sim.messages().len(), 3);
}

#[tokio::test]
async fn each_answer_means_what_the_contract_says() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    let answer = Fault::answer;
    let rows = [
        (answer(400).code("ErrorInvalidRecipients"), NotSent),
        (answer(401).code("InvalidAuthenticationToken"), NotSent),
        (answer(403).code("ErrorAccessDenied"), NotSent),
        (answer(404).code("ErrorInvalidUser"), NotSent),
        (answer(408), NotSent),
        (answer(413), NotSent),
        (answer(422), NotSent),
        (answer(400).retry_after("5"), NotSent),
        (
            answer(500).code("InternalServerError").message("UnknownError"),
            NotSent,
        ),
        (
            answer(500).code("ErrorInternalServerError").retry_after("5"),
            NotSent,
        ),
        (answer(500), NotSent),
        (answer(500).body("<html>UnknownError</html>"), NotSent),
        (answer(500).body(r#"{"error":{"code":5}}"#), NotSent),
        (answer(503).code("ErrorServerBusy"), NotSent),
        (answer(503), NotSent),
        (
            answer(429).code("ApplicationThrottled").retry_after("17"),
            throttled(17.0),
        ),
        (answer(429).code("ApplicationThrottled"), throttled(60.0)),
        (answer(429).body("<html>"), throttled(60.0)),
        (
            answer(503).code("ErrorServerBusy").retry_after("120"),
            throttled(120.0),
        ),
        (answer(503).retry_after("soon"), throttled(60.0)),
        (answer(400).code("UnknownError"), Unknown),
        (answer(403).code("unknownError"), Unknown),
        (answer(429).code("UnknownError").retry_after("9"), Unknown),
        (answer(500).code("UnknownError"), Unknown),
        (answer(503).code("UnknownError").retry_after("9"), Unknown),
        (
            answer(429)
                .code("CommandConcurrencyLimitReached")
                .retry_after("9"),
            Unknown,
        ),
        (answer(500).code("CommandConcurrencyLimitReached"), Unknown),
        (answer(502), Unknown),
        (answer(502).code("ErrorServerBusy"), Unknown),
        (answer(504).code("ErrorTimeout").retry_after("9"), Unknown),
        (answer(200), Unknown),
        (answer(201), Unknown),
        (answer(204), Unknown),
        (answer(302), Unknown),
        (answer(501), Unknown),
        (answer(520), Unknown),
    ];
    for (fault, expected) in rows {
        sim.inject(fault.clone());
        let error = send(&mailer).await.unwrap_err();
        assert_eq!(error.mail_outcome(), expected, "{fault:?}: {error}");
        assert_eq!(
            error.is_throttled(),
            matches!(expected, Throttled { .. }),
            "{error}"
        );
        // 401 speaks of the token, and the next try takes a new one.
        let is_refused = expected == NotSent && matches!(error.status(), Some(400 | 402..500));
        assert_eq!(error.is_permanent(), is_refused, "{error}");
        assert!(!error.is_mail() && !error.is_token() && !error.is_connection() && !error.is_timeout());
        assert!(error.request_id().is_some() && error.status().is_some());
    }
    assert!(sim.messages().is_empty());
}

#[tokio::test]
async fn the_error_says_what_graph_said() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    sim.inject(
        Fault::answer(503)
            .code("ErrorServerBusy")
            .message("Server\r\nis busy.")
            .retry_after("2.5"),
    );
    let error = send(&mailer).await.unwrap_err();
    assert_eq!(
        (error.status(), error.code()),
        (Some(503), Some("ErrorServerBusy"))
    );
    assert_eq!(error.retry_after(), Some(Duration::from_millis(2500)));
    let id = error.request_id().unwrap();
    assert_eq!(
        error.to_string(),
        format!(
            "Microsoft Graph answered 503 ErrorServerBusy: Server  is busy. (retry after 2.5 s) (request-id {id}); \
             the mail was not sent, its mailbox must wait"
        )
    );
}

#[tokio::test]
async fn retry_after_is_understood_in_every_form() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    let throttle = || Fault::answer(429).code("ApplicationThrottled");
    let rows = [
        (throttle().retry_after("0"), 1.0),
        (throttle().retry_after("2.5"), 2.5),
        (throttle().retry_after("5, 30"), 30.0),
        (
            throttle()
                .retry_after("5")
                .retry_after("40")
                .retry_after("rubbish"),
            40.0,
        ),
        (throttle().retry_after("rubbish"), 60.0),
        (throttle().retry_after("-5"), 60.0),
        (throttle().retry_after("1e308"), 86_400.0),
    ];
    for (fault, seconds) in rows {
        sim.inject(fault.clone());
        assert_eq!(outcome(&mailer).await, throttled(seconds), "{fault:?}");
    }
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
    sim.inject(throttle().retry_after(&date));
    let Throttled { retry_after } = outcome(&mailer).await else {
        panic!("not throttled")
    };
    assert!((95..=100).contains(&retry_after.as_secs()), "{retry_after:?}");

    let canned = Canned::new("HTTP/1.1 429 Slow down\r\nrEtRy-aFtEr: 7\r\nContent-Length: 0\r\n\r\n").await;
    let mailer = builder(&sim.base_url(), &canned.url).build().unwrap();
    assert_eq!(outcome(&mailer).await, throttled(7.0));
}

#[tokio::test]
async fn a_mailbox_over_microsofts_limit_is_throttled_for_as_long_as_the_window_lasts() {
    let sim = graph_sim::GraphSim::builder().start().await;
    let mailer = mailer(&sim);
    for _ in 0..30 {
        send(&mailer).await.unwrap();
    }
    let Throttled { retry_after } = outcome(&mailer).await else {
        panic!("not throttled")
    };
    sim.advance(retry_after);
    send(&mailer).await.unwrap();
    assert_eq!(sim.report().mailbox(MAILBOX).throttled_messages, 1);
}

#[tokio::test]
async fn a_reset_after_the_request_was_written_leaves_the_mail_unknown_and_is_not_retried() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    for fault in [Fault::reset().before_the_body(), Fault::reset()] {
        sim.inject(fault);
        let error = send(&mailer).await.unwrap_err();
        assert!(error.is_connection(), "{error}");
        assert_eq!(error.mail_outcome(), Unknown);
    }
    let report = sim.report().mailbox(MAILBOX);
    assert_eq!(
        (report.faults, report.accepted),
        (2, 0),
        "a retry would have been accepted"
    );
}

#[tokio::test]
async fn a_hang_after_the_request_was_written_leaves_the_mail_unknown_when_time_is_up() {
    let sim = sim().start().await;
    let mailer = builder(&sim.base_url(), &sim.base_url())
        .timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    for fault in [Fault::hang().before_the_body(), Fault::hang()] {
        sim.inject(fault);
        let error = send(&mailer).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert_eq!(error.mail_outcome(), Unknown);
    }
    send(&common::mailer(&sim)).await.unwrap();
    assert_eq!(sim.messages().len(), 1);
}

#[tokio::test]
async fn a_mail_that_is_accepted_before_the_failure_is_unknown_and_there_exactly_once() {
    let sim = sim().start().await;
    let mailer = builder(&sim.base_url(), &sim.base_url())
        .timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let faults = [
        Fault::answer(504),
        Fault::answer(503).code("UnknownError"),
        Fault::reset(),
        Fault::hang(),
    ];
    for (sent, fault) in faults.into_iter().enumerate() {
        sim.inject(fault.after_accepting());
        assert_eq!(outcome(&mailer).await, Unknown);
        assert_eq!(sim.messages().len(), sent + 1);
    }
}

#[tokio::test]
async fn without_a_connection_nothing_was_sent() {
    let sim = sim().start().await;
    let mailer = builder(&sim.base_url(), &nobody()).build().unwrap();
    let error = send(&mailer).await.unwrap_err();
    assert!(error.is_connection() && !error.is_timeout());
    assert_eq!(error.mail_outcome(), NotSent);
    assert!(error.to_string().contains("Connection refused"), "{error}");
}

#[tokio::test]
async fn time_that_runs_out_before_the_request_was_written_means_not_sent() {
    let sim = sim().start().await;
    // The TLS handshake never ends.
    let frozen = Frozen::new();
    let timeout = Duration::from_millis(300);
    let mailer = builder(&sim.base_url(), &frozen.url("https"))
        .timeout(timeout)
        .build()
        .unwrap();
    let error = send(&mailer).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.mail_outcome(), NotSent);

    let mailer = builder(&sim.base_url(), &frozen.url("http"))
        .timeout(timeout)
        .build()
        .unwrap();
    let error = send(&mailer).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.mail_outcome(), Unknown);
}

#[tokio::test]
async fn an_answer_that_breaks_off_leaves_the_mail_unknown() {
    let sim = sim().start().await;
    let answers = [
        "HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\n{\"error\":",
        "HTTP/1.1 500 Oops\r\nConten",
        "rubbish\r\n\r\n",
        "",
    ];
    for answer in answers {
        let canned = Canned::new(answer).await;
        let mailer = builder(&sim.base_url(), &canned.url).build().unwrap();
        let error = send(&mailer).await.unwrap_err();
        assert_eq!(error.mail_outcome(), Unknown, "{answer:?}: {error}");
        assert_eq!(canned.requests().len(), 1);
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let sim = sim().start().await;
    for status in [302, 303, 307] {
        let answer =
            format!("HTTP/1.1 {status} Elsewhere\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
        let canned = Canned::new(answer).await;
        let mailer = builder(&sim.base_url(), &canned.url).build().unwrap();
        let error = send(&mailer).await.unwrap_err();
        assert_eq!((error.status(), error.mail_outcome()), (Some(status), Unknown));
        assert_eq!(canned.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn the_request_is_what_microsoft_documents() {
    let sim = sim().start().await;
    let canned = Canned::new("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
    let mailer = builder(&sim.base_url(), &format!("{}/base/", canned.url))
        .build()
        .unwrap();
    send(&mailer).await.unwrap();
    let [request] = canned.requests().try_into().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(
        head.starts_with("post /base/v1.0/users/news@example.com/sendmail http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\ncontent-type: text/plain\r\n"), "{head}");
    assert!(head.contains("\r\nauthorization: bearer sim."), "{head}");
    assert!(
        head.contains(&format!("\r\ncontent-length: {}", body.len())),
        "{head}"
    );
    assert!(!head.contains("transfer-encoding"), "{head}");
}

#[tokio::test]
async fn a_server_that_came_back_is_sent_to_over_a_new_connection() {
    let first = sim().start().await;
    let mailer = mailer(&first);
    send(&mailer).await.unwrap();
    let address: SocketAddr = first.base_url().strip_prefix("http://").unwrap().parse().unwrap();
    drop(first);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(outcome(&mailer).await, NotSent);

    let second = sim().listen(address).start().await;
    assert_eq!(
        outcome(&mailer).await,
        NotSent,
        "its token is none of the new server's"
    );
    send(&mailer).await.unwrap();
    assert_eq!(second.messages().len(), 1);
}
