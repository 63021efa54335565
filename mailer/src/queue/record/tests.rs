use std::time::Duration;

use mailrl_client::DenialReason;

use super::*;
use crate::service::Deferral;
use crate::time::time;

mod interleavings;

const NOW: u64 = 1_800_000_000_000;
const LEASE: u64 = 60_000;

fn record() -> Record {
    let job = MailJob {
        message_id: "m".parse().unwrap(),
        tenant: None,
        from: None,
        to: None,
        created_at: None,
        mime: None,
        mime_path: Some("messages/m.eml".to_owned()),
    };
    Record::new(job, "m".to_owned(), "news@example.com".to_owned(), NOW - 5, NOW)
}

fn claimed_by(holder: &str) -> Record {
    let mut record = record();
    assert_eq!(record.claim(holder, NOW + LEASE, NOW), Ok(Claimable::Claimed));
    record
}

fn announced_by(holder: &str) -> Record {
    let mut record = claimed_by(holder);
    record.announce(holder, NOW + LEASE).unwrap();
    record
}

fn unknown() -> Record {
    let mut record = announced_by("a");
    let unknown = Err(DeliveryError::Unknown("a timeout".to_owned()));
    record.settle("a", &unknown, NOW).unwrap();
    record
}

fn failed() -> Record {
    let mut record = claimed_by("a");
    let failed = Err(DeliveryError::Failed("too many recipients".to_owned()));
    record.settle("a", &failed, NOW).unwrap();
    record
}

fn put_off(reason: DeferralReason, until: u64) -> Delivery {
    Delivery::Scheduled(Deferral {
        scheduled_on: time(until),
        reason,
        retry_after: Duration::from_secs(1),
        spread: Duration::ZERO,
    })
}

fn denied(until: u64) -> Delivery {
    put_off(DeferralReason::Denied(DenialReason::Minute), until)
}

#[test]
fn a_new_message_is_pending_and_due_at_once() {
    let record = record();
    assert_eq!(record.state, MessageState::Pending);
    assert_eq!(record.due(), Some(NOW));
    assert_eq!(record.history.len(), 1);
}

#[test]
fn who_claims_a_message_keeps_all_others_off_until_the_claim_ends() {
    let mut record = claimed_by("a");
    assert_eq!(
        record.claim("b", NOW + 2 * LEASE, NOW + LEASE - 1),
        Err(Refusal::Held { until: NOW + LEASE })
    );
    assert_eq!(
        record.claim("a", NOW + 2 * LEASE, NOW + 1),
        Err(Refusal::Held { until: NOW + LEASE })
    );
    assert_eq!(record.due(), Some(NOW + LEASE));
}

#[test]
fn a_claim_that_ended_before_its_mail_was_announced_goes_to_the_next() {
    let mut record = claimed_by("a");
    let later = NOW + LEASE;
    assert_eq!(record.claim("b", later + LEASE, later), Ok(Claimable::Claimed));
    assert_eq!(record.announce("a", later + LEASE), Err(Refusal::Lost));
    assert_eq!(record.settle("a", &Ok(Delivery::Sent), later), Err(Refusal::Lost));
    assert_eq!(record.announce("b", later + LEASE), Ok(()));
}

#[test]
fn a_claim_that_ended_after_its_mail_was_announced_leaves_it_unknown() {
    let mut record = announced_by("a");
    let later = NOW + LEASE;
    assert_eq!(record.claim("b", later + LEASE, later), Ok(Claimable::Abandoned));
    assert_eq!(record.state, MessageState::Unknown);
    assert!(record.reason.as_deref().unwrap().contains("ended without a word"));
    assert_eq!(
        record.claim("b", later + LEASE, later),
        Err(Refusal::State(MessageState::Unknown))
    );
    assert_eq!(record.due(), None);
}

#[test]
fn a_message_that_is_being_sent_by_nobody_may_have_been_sent() {
    let mut record = claimed_by("a");
    record.claim = None;
    assert_eq!(record.due(), Some(0));
    assert_eq!(record.claim("b", NOW + LEASE, NOW), Ok(Claimable::Abandoned));
}

#[test]
fn who_held_an_unknown_message_can_still_say_what_came_of_it_and_nobody_else() {
    let mut abandoned = announced_by("a");
    abandoned.claim("b", NOW + 2 * LEASE, NOW + LEASE).unwrap();
    for came_to in [
        Ok(Delivery::Sent),
        Ok(denied(NOW + LEASE)),
        Err(DeliveryError::Failed("refused".into())),
    ] {
        let mut record = abandoned.clone();
        assert_eq!(record.settle("b", &came_to, NOW), Err(Refusal::Lost));
        assert_eq!(record, abandoned, "a refused step changes nothing");
        assert_eq!(record.settle("a", &came_to, NOW + LEASE), Ok(()));
        assert_ne!(record.state, MessageState::Unknown);
        assert_eq!(record.settle("a", &came_to, NOW + LEASE), Err(Refusal::Lost));
    }
}

#[test]
fn a_scheduled_message_waits_for_its_time() {
    let mut record = claimed_by("a");
    let at = NOW + 5_000;
    record.settle("a", &Ok(denied(at)), NOW).unwrap();
    assert_eq!((record.state, record.due()), (MessageState::Scheduled, Some(at)));
    assert_eq!(
        record.claim("b", at + LEASE, at - 1),
        Err(Refusal::NotYet { scheduled_on: at })
    );
    assert_eq!(record.claim("b", at + LEASE, at), Ok(Claimable::Claimed));
    assert_eq!((record.scheduled_on, record.reason), (None, None));
}

#[test]
fn being_denied_is_counted_apart_from_failing() {
    let mut record = record();
    let failure = put_off(DeferralReason::Failure("503".to_owned()), NOW);
    for came_to in [denied(NOW), failure, denied(NOW)] {
        record.claim("a", NOW + LEASE, NOW).unwrap();
        record.settle("a", &Ok(came_to), NOW).unwrap();
    }
    assert_eq!((record.denials, record.failures), (2, 1));
}

#[test]
fn a_message_that_has_ended_is_neither_claimed_nor_due() {
    let mut sent = claimed_by("a");
    sent.settle("a", &Ok(Delivery::Sent), NOW).unwrap();
    for mut record in [sent, failed()] {
        assert!(record.state.has_ended());
        assert_eq!(
            record.claim("b", NOW + LEASE, NOW),
            Err(Refusal::State(record.state))
        );
        assert_eq!(record.due(), None);
    }
}

#[test]
fn a_person_decides_on_what_waits_failed_or_is_unknown() {
    use Decision::{Drop, Send, Sent};
    use MessageState::{Failed, Pending, Scheduled};
    let mut scheduled = claimed_by("a");
    scheduled.settle("a", &Ok(denied(NOW + 1)), NOW).unwrap();
    let mut sent = claimed_by("a");
    sent.settle("a", &Ok(Delivery::Sent), NOW).unwrap();
    let refused = |state| Err(Refusal::State(state));
    for (before, decision, after) in [
        (record(), Send, Ok(Pending)),
        (record(), Drop, Ok(Failed)),
        (record(), Sent, refused(Pending)),
        (scheduled.clone(), Send, Ok(Pending)),
        (scheduled.clone(), Drop, Ok(Failed)),
        (scheduled, Sent, refused(Scheduled)),
        (unknown(), Send, Ok(Pending)),
        (unknown(), Drop, Ok(Failed)),
        (unknown(), Sent, Ok(MessageState::Sent)),
        (failed(), Send, Ok(Pending)),
        (failed(), Drop, refused(Failed)),
        (failed(), Sent, refused(Failed)),
        (sent.clone(), Send, refused(MessageState::Sent)),
        (sent.clone(), Drop, refused(MessageState::Sent)),
        (sent, Sent, refused(MessageState::Sent)),
    ] {
        let mut record = before.clone();
        let decided = record.decide(decision, "eve@host", NOW);
        assert_eq!(
            decided.clone().map(|()| record.state),
            after,
            "{decision:?} on {:?}",
            before.state
        );
        if decided.is_ok() {
            assert!(record.reason.as_deref().unwrap().starts_with("eve@host "));
        } else {
            assert_eq!(record, before, "a refused decision changes nothing");
        }
    }
}

#[test]
fn nobody_decides_on_a_message_while_it_is_being_sent() {
    let mut record = announced_by("a");
    for decision in [Decision::Send, Decision::Drop, Decision::Sent] {
        assert_eq!(
            record.decide(decision, "eve", NOW + LEASE - 1),
            Err(Refusal::Held { until: NOW + LEASE })
        );
    }
    assert_eq!(record.decide(Decision::Sent, "eve", NOW + LEASE), Ok(()));
    let mut record = claimed_by("a");
    assert_eq!(
        record.decide(Decision::Sent, "eve", NOW + LEASE),
        Err(Refusal::State(MessageState::Sending)),
        "it was not handed over"
    );
    assert_eq!(record.decide(Decision::Drop, "eve", NOW + LEASE), Ok(()));
    assert_eq!(record.announce("a", NOW + 2 * LEASE), Err(Refusal::Lost));
}

#[test]
fn who_has_a_message_sent_starts_its_age_and_its_tries_anew() {
    let mut record = failed();
    record.failures = 6;
    record.decide(Decision::Send, "eve", NOW + 9).unwrap();
    assert_eq!((record.failures, record.created_at), (0, NOW + 9));
    assert_eq!(record.due(), Some(NOW + 9));
}

#[test]
fn after_a_decision_the_former_holder_has_lost_the_message() {
    let mut record = announced_by("a");
    record.claim("b", NOW + 2 * LEASE, NOW + LEASE).unwrap();
    record.decide(Decision::Send, "eve", NOW + LEASE).unwrap();
    assert_eq!(record.settle("a", &Ok(Delivery::Sent), NOW), Err(Refusal::Lost));
    assert_eq!(record.announce("a", NOW + LEASE), Err(Refusal::Lost));
}

#[test]
fn the_history_keeps_the_last_50_steps() {
    let mut record = record();
    for n in 0..100 {
        record.claim("a", NOW + n + LEASE, NOW + n).unwrap();
        record.settle("a", &Ok(denied(NOW + n)), NOW + n).unwrap();
    }
    assert_eq!(record.history.len(), 50);
    assert_eq!(record.history.last().unwrap().at, NOW + 99);
    assert_eq!(record.history[0].at, NOW + 75);
}

#[test]
fn a_record_is_the_same_after_it_was_written_and_read() {
    for record in [record(), announced_by("a"), unknown(), failed()] {
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    }
}
