//! Workers, persons and clocks in any order, each acting on what it read some time ago.

use proptest::prelude::*;

use super::*;

const WORKERS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A worker goes on with what it is about, by a clock that is so far off.
    Worker {
        worker: usize,
        clock: i64,
        answer: Answer,
    },
    /// A worker dies and forgets all.
    Death { worker: usize },
    /// A person reads the record.
    Look,
    /// A person writes what is decided on what was read.
    Decide { decision: Decision, clock: i64 },
    /// Time passes.
    Time(u64),
}

/// What a provider does with a mail, and what the worker gets to know of it.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Accepted,
    AcceptedUnheard,
    LostUnheard,
    Denied,
    Refused,
}

/// Where a worker is. Each write is of what it read a step before.
#[derive(Debug, Clone, Default)]
enum Place {
    #[default]
    Idle,
    Read(Version),
    Claimed(String),
    ReadToAnnounce(String, Version),
    /// The mail is on the wire.
    Posting(String),
    Told(String, Result<Delivery, DeliveryError>),
    ReadToSettle(String, Result<Delivery, DeliveryError>, Version),
}

#[derive(Debug, Clone)]
struct Version {
    record: Record,
    version: u64,
}

struct World {
    stored: Version,
    now: u64,
    workers: [Place; WORKERS],
    holders: u32,
    looked: Option<Version>,
    delivered: u32,
    /// How often a person risked to have it sent twice.
    risked: u32,
}

impl World {
    fn new() -> Self {
        Self {
            stored: Version {
                record: record(),
                version: 1,
            },
            now: NOW,
            workers: Default::default(),
            holders: 0,
            looked: None,
            delivered: 0,
            risked: 0,
        }
    }

    fn write(&mut self, read: &Version, record: Record) -> bool {
        if read.version != self.stored.version {
            return false;
        }
        let (from, to) = (self.stored.record.state, record.state);
        assert!(may_follow(from, to), "{from} must not become {to}");
        self.stored = Version {
            record,
            version: read.version + 1,
        };
        true
    }

    fn play(&mut self, event: Event) {
        match event {
            Event::Worker {
                worker,
                clock,
                answer,
            } => {
                let now = self.now.saturating_add_signed(clock);
                let place = std::mem::take(&mut self.workers[worker]);
                self.workers[worker] = self.go_on(place, now, answer);
            }
            Event::Death { worker } => self.workers[worker] = Place::Idle,
            Event::Look => self.looked = Some(self.stored.clone()),
            Event::Decide { decision, clock } => self.decide(decision, clock),
            Event::Time(passed) => self.now += passed,
        }
        let posting = self
            .workers
            .iter()
            .filter(|place| matches!(place, Place::Posting(_)));
        let posting = u32::try_from(posting.count()).unwrap();
        assert!(posting <= 1 + self.risked, "{posting} hand the same mail over");
        assert!(
            self.delivered <= 1 + self.risked,
            "it arrived {} times",
            self.delivered
        );
    }

    fn go_on(&mut self, place: Place, now: u64, answer: Answer) -> Place {
        match place {
            Place::Idle => Place::Read(self.stored.clone()),
            Place::Read(read) => {
                let mut record = read.record.clone();
                self.holders += 1;
                let holder = self.holders.to_string();
                match record.claim(&holder, now + LEASE, now) {
                    Ok(came_to) if self.write(&read, record) && came_to == Claimable::Claimed => {
                        Place::Claimed(holder)
                    }
                    _ => Place::Idle,
                }
            }
            // Its mailbox has no budget, so it comes to nothing that could be announced.
            Place::Claimed(holder) if matches!(answer, Answer::Denied) => {
                Place::Told(holder, Ok(denied(now + 1_000)))
            }
            Place::Claimed(holder) => Place::ReadToAnnounce(holder, self.stored.clone()),
            Place::ReadToAnnounce(holder, read) => {
                let mut record = read.record.clone();
                match record.announce(&holder, now + LEASE) {
                    Ok(()) if self.write(&read, record) => Place::Posting(holder),
                    Ok(()) => Place::Claimed(holder),
                    Err(_) => Place::Idle,
                }
            }
            Place::Posting(holder) => Place::Told(holder, self.answer(answer, now)),
            Place::Told(holder, told) => Place::ReadToSettle(holder, told, self.stored.clone()),
            Place::ReadToSettle(holder, told, read) => {
                let mut record = read.record.clone();
                let settled = record.settle(&holder, &told, now);
                let claimed_by = read.record.claim.as_ref().map(|claim| claim.holder.as_str());
                assert!(
                    settled.is_err() || claimed_by == Some(&holder),
                    "{holder} settled another's"
                );
                match settled {
                    Ok(()) if !self.write(&read, record) => Place::Told(holder, told),
                    _ => Place::Idle,
                }
            }
        }
    }

    fn answer(&mut self, answer: Answer, now: u64) -> Result<Delivery, DeliveryError> {
        self.delivered += u32::from(matches!(answer, Answer::Accepted | Answer::AcceptedUnheard));
        match answer {
            Answer::Accepted => Ok(Delivery::Sent),
            Answer::AcceptedUnheard | Answer::LostUnheard => Err(DeliveryError::Unknown("?".to_owned())),
            Answer::Denied => Ok(denied(now + 1_000)),
            Answer::Refused => Err(DeliveryError::Failed("no".to_owned())),
        }
    }

    fn decide(&mut self, decision: Decision, clock: i64) {
        let Some(read) = self.looked.take() else {
            return;
        };
        let mut record = read.record.clone();
        let now = self.now.saturating_add_signed(clock);
        if record.decide(decision, "eve", now).is_ok()
            && self.write(&read, record)
            && decision == Decision::Send
        {
            // What a person has sent again from here on may have been sent before.
            let risky = match read.record.state {
                MessageState::Pending | MessageState::Scheduled => false,
                MessageState::Sending => read.record.claim.is_none_or(|claim| claim.announced),
                _ => true,
            };
            self.risked += u32::from(risky);
        }
    }
}

fn may_follow(from: MessageState, to: MessageState) -> bool {
    use MessageState::{Failed, Pending, Scheduled, Sending, Sent, Unknown};
    match from {
        Sent => false,
        Failed => to == Pending,
        Pending | Scheduled => matches!(to, Sending | Pending | Failed),
        Sending => true,
        Unknown => to != Sending,
    }
}

fn clock() -> impl Strategy<Value = i64> {
    let hour = 3_600_000_i64;
    prop_oneof![4 => Just(0_i64), 1 => -hour..hour]
}

fn event() -> impl Strategy<Value = Event> {
    let answer = prop_oneof![
        2 => Just(Answer::Accepted),
        1 => Just(Answer::AcceptedUnheard),
        1 => Just(Answer::LostUnheard),
        3 => Just(Answer::Denied),
        1 => Just(Answer::Refused),
    ];
    let decision = prop_oneof![Just(Decision::Send), Just(Decision::Sent), Just(Decision::Drop)];
    prop_oneof![
        12 => (0..WORKERS, clock(), answer)
            .prop_map(|(worker, clock, answer)| Event::Worker { worker, clock, answer }),
        1 => (0..WORKERS).prop_map(|worker| Event::Death { worker }),
        1 => Just(Event::Look),
        1 => (decision, clock()).prop_map(|(decision, clock)| Event::Decide { decision, clock }),
        2 => (0..2 * LEASE).prop_map(Event::Time),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_mail_arrives_once_at_most_unless_a_person_took_the_risk(
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut world = World::new();
        for event in events {
            world.play(event);
        }
    }

    #[test]
    fn a_message_that_has_not_ended_is_due_or_waits_for_a_person(
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut world = World::new();
        for event in events {
            world.play(event);
            let record = &world.stored.record;
            let waits_by_itself = !record.state.has_ended() && record.state != MessageState::Unknown;
            prop_assert_eq!(record.due().is_some(), waits_by_itself);
        }
    }
}
