//! A send that is dropped says rightly whether its mail can have gone out.

mod common;

use std::collections::HashSet;
use std::time::Duration;

use common::{Frozen, builder, envelope, eventually, mail, mailer, send, sim};
use graph_sim::Fault;
use lettre::AsyncTransport;
use mailrl_client::handover::{Handover, observe};
use mailrl_client::{MailOutcome, SendFailure};
use mailrl_mailer::MicrosoftGraphMailer;

/// Sends, drops the send after a while, and asks how far it had come.
async fn is_certainly_not_written_when_dropped(mailer: &MicrosoftGraphMailer) -> bool {
    let handover = Handover::default();
    let sending = observe(handover.clone(), send(mailer));
    assert!(
        tokio::time::timeout(Duration::from_millis(200), sending)
            .await
            .is_err(),
        "it should hang"
    );
    handover.certainly_not_written()
}

#[tokio::test]
async fn dropped_while_it_waits_for_a_token_or_a_handshake_nothing_was_written() {
    let sim = sim().start().await;
    sim.inject(Fault::hang().on_token());
    assert!(is_certainly_not_written_when_dropped(&mailer(&sim)).await);
    assert_eq!(sim.report().mailboxes.len(), 0);

    let frozen = Frozen::new();
    let handshaking = builder(&sim.base_url(), &frozen.url("https")).build().unwrap();
    assert!(is_certainly_not_written_when_dropped(&handshaking).await);
}

#[tokio::test]
async fn dropped_while_it_waits_for_the_answer_it_may_have_been_written() {
    let sim = sim().start().await;
    for fault in [
        Fault::hang().before_the_body(),
        Fault::hang(),
        Fault::hang().after_accepting(),
    ] {
        sim.inject(fault);
        assert!(!is_certainly_not_written_when_dropped(&mailer(&sim)).await);
    }
    let frozen = Frozen::new();
    let frozen = builder(&sim.base_url(), &frozen.url("http")).build().unwrap();
    assert!(!is_certainly_not_written_when_dropped(&frozen).await);
}

#[tokio::test]
async fn a_mail_that_was_refused_before_any_request_was_not_written() {
    let sim = sim().start().await;
    let mailer = mailer(&sim);
    let handover = Handover::default();
    let envelope = envelope(&["b@example.net"]);
    assert!(
        observe(handover.clone(), mailer.send_raw(&envelope, &mail("x")))
            .await
            .is_err()
    );
    assert!(handover.certainly_not_written());

    let handover = Handover::default();
    observe(handover.clone(), send(&mailer)).await.unwrap();
    assert!(!handover.certainly_not_written());
}

/// The connection's own task writes the mail. Whatever the moment at which a send ends, one that is
/// said not to have been written must not arrive, then or later.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_mail_that_is_said_not_to_have_been_written_never_arrives() {
    let sim = sim().start().await;
    let warm = mailer(&sim);
    send(&warm).await.unwrap();
    let mut not_written = HashSet::new();
    let mut perhaps_written = 0;
    for round in 0..40_u32 {
        let sends: Vec<_> = (0..25_u32)
            .map(|n| {
                let mailer = warm.clone();
                let subject = format!("dropped {round} {n}");
                tokio::spawn(async move {
                    let handover = Handover::default();
                    let (envelope, mail) = (envelope(&["a@example.net"]), mail(&subject));
                    let sending = observe(handover.clone(), mailer.send_raw(&envelope, &mail));
                    let after = Duration::from_micros(u64::from(n) * 100);
                    tokio::select! {
                        biased;
                        () = spin(after) => {}
                        _ = sending => {}
                    }
                    (subject, handover.certainly_not_written())
                })
            })
            .collect();
        for send in sends {
            let (subject, certainly_not_written) = send.await.unwrap();
            if certainly_not_written {
                not_written.insert(subject);
            } else {
                perhaps_written += 1;
            }
        }
    }
    let arrived = || {
        sim.messages()
            .into_iter()
            .map(|message| message.subject)
            .collect::<HashSet<_>>()
    };
    eventually("mails arrive", || arrived().len() > 10).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let arrived = arrived();
    let wrong: Vec<_> = arrived.intersection(&not_written).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let both = [not_written.len(), perhaps_written];
    assert!(both.iter().all(|count| *count > 10), "{both:?}");
}

/// Ends after this long, as exactly as can be: a timer of tokio has a whole millisecond.
async fn spin(time: Duration) {
    let start = std::time::Instant::now();
    while start.elapsed() < time {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_mail_whose_time_ran_out_unwritten_never_arrives() {
    let sim = sim().start().await;
    let mut not_sent = HashSet::new();
    for ms in 1..=60_u64 {
        let timeout = Duration::from_micros(ms * 250);
        let mailer = builder(&sim.base_url(), &sim.base_url())
            .timeout(timeout)
            .build()
            .unwrap();
        let subject = format!("timed out {ms}");
        let sent = mailer
            .send_raw(&envelope(&["a@example.net"]), &mail(&subject))
            .await;
        if sent.is_err_and(|error| error.mail_outcome() == MailOutcome::NotSent) {
            not_sent.insert(subject);
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(
        sim.messages()
            .iter()
            .all(|message| !not_sent.contains(&message.subject))
    );
    assert!(!not_sent.is_empty());
}
