//! Reservations are remembered exactly: found while they are open, never afterwards.

use proptest::prelude::*;

use mailrl_core::{
    Changes, Config, IdText, Lane, MOST_OPEN, Request, ReservationId, SHORTEST_VALUE, Verdict, WindowKind,
    Wish, commit, release, reserve, status,
};

const NOW: u64 = 1_700_000_000_000;
const PLENTY: Config = Config {
    per_minute: 1_000_000,
    per_day: 1_000_000,
    kind: WindowKind::Calendar,
    pacing: false,
    bulk_share: 80,
};

fn make(value: &mut Vec<u8>, lease_ms: u32, now: u64) -> ReservationId {
    let request = Request {
        recipients: 1,
        wish: Wish::default(),
        lane: Lane::Normal,
        lease_ms,
    };
    match reserve(value, &PLENTY, &request, now).unwrap().verdict {
        Verdict::Allowed(id) => id,
        other => panic!("allowed was expected, not {other:?}"),
    }
}

fn open(value: &[u8], now: u64) -> usize {
    status(value, &PLENTY, now).unwrap().open
}

fn is_released(value: &mut Vec<u8>, id: ReservationId, now: u64) -> bool {
    release(value, PLENTY.kind, id, now).unwrap().is_some()
}

#[test]
fn the_oldest_of_more_than_1024_counts_as_committed() {
    let mut value = Vec::new();
    let ids: Vec<_> = (0..MOST_OPEN + 2)
        .map(|_| make(&mut value, 60_000, NOW))
        .collect();
    assert_eq!(open(&value, NOW), MOST_OPEN);
    assert!(!is_released(&mut value, ids[0], NOW) && !is_released(&mut value, ids[1], NOW));
    assert!(is_released(&mut value, ids[2], NOW));
    assert_eq!(status(&value, &PLENTY, NOW).unwrap().minute.used, 1_025);
}

#[test]
fn one_whose_lease_is_over_makes_room_for_the_oldest() {
    let mut value = Vec::new();
    let oldest = make(&mut value, 3_600_000, NOW);
    for _ in 1..MOST_OPEN {
        make(&mut value, 1_000, NOW);
    }
    make(&mut value, 60_000, NOW + 1_000);
    assert_eq!(open(&value, NOW + 1_000), 2);
    assert!(is_released(&mut value, oldest, NOW + 1_000));
}

#[test]
fn those_whose_lease_is_over_make_room_for_the_oldest_also_when_the_value_grows() {
    let mut value = Vec::new();
    let oldest = make(&mut value, 3_600_000, NOW);
    for _ in 0..240 {
        make(&mut value, 1_000, NOW);
    }
    let ids: Vec<_> = (241..MOST_OPEN).map(|_| make(&mut value, 60_000, NOW)).collect();
    // Closed ones among the older keep their places: all of them are taken by as many as are remembered.
    for id in &ids[..4] {
        assert!(is_released(&mut value, *id, NOW));
    }
    for _ in 0..4 {
        make(&mut value, 60_000, NOW);
    }
    let len = value.len();
    assert_eq!(open(&value, NOW), MOST_OPEN);
    make(&mut value, 60_000, NOW + 1_000);
    assert_eq!(open(&value, NOW + 1_000), MOST_OPEN - 240 + 1);
    assert!(is_released(&mut value, oldest, NOW + 1_000));
    assert_eq!(value.len(), len, "without those, there is room enough");
}

#[test]
fn recent_ones_whose_lease_is_over_make_room_for_the_oldest_too() {
    let mut value = Vec::new();
    let oldest = make(&mut value, 3_600_000, NOW);
    for _ in 1..MOST_OPEN - 4 {
        make(&mut value, 3_600_000, NOW);
    }
    for _ in 0..4 {
        make(&mut value, 1, NOW);
    }
    for _ in 0..4 {
        make(&mut value, 60_000, NOW + 1);
    }
    assert_eq!(open(&value, NOW + 1), MOST_OPEN);
    assert!(is_released(&mut value, oldest, NOW + 1));
}

#[test]
fn a_clock_that_steps_back_by_months_holds_no_place() {
    let mut value = Vec::new();
    make(&mut value, 3_600_000, NOW);
    assert_eq!(open(&value, NOW - 90 * 86_400_000), 0);
    assert_eq!(open(&value, NOW - 3_600_000), 1);
}

#[test]
fn one_that_stays_open_is_not_forgotten_while_thousands_come_and_go() {
    let mut value = Vec::new();
    let stays = make(&mut value, 3_600_000, NOW);
    for after in 0..5_000 {
        let id = make(&mut value, 60_000, NOW + after);
        assert!(
            commit(&mut value, PLENTY.kind, id, NOW + after)
                .unwrap()
                .is_some()
        );
    }
    assert_eq!(value.len(), SHORTEST_VALUE, "closed ones leave no room behind");
    assert!(is_released(&mut value, stays, NOW + 5_000));
}

#[test]
fn a_value_that_grew_shrinks_again() {
    let mut value = Vec::new();
    for _ in 0..500 {
        make(&mut value, 1_000, NOW);
    }
    let grown = value.len();
    for after in 0..10 {
        make(&mut value, 1, NOW + 1_000 + after);
    }
    assert!(
        value.len() < grown / 4,
        "{} of {grown} bytes are left",
        value.len()
    );
}

#[test]
fn numbers_go_on_where_they_wrap() {
    let mut value = Vec::new();
    let id = make(&mut value, 60_000, NOW);
    assert!(is_released(&mut value, id, NOW));
    // The next number stands behind both window heads and the clock of the last write.
    let next = 184 + 24 + 6;
    value[next..next + 4].copy_from_slice(&(u32::MAX - 1).to_le_bytes());
    let first = make(&mut value, 1, NOW);
    let ids: Vec<_> = (0..6)
        .map(|after| make(&mut value, 60_000, NOW + 1 + after))
        .collect();
    assert_eq!((first.seq, ids[0].seq, ids[1].seq), (u32::MAX - 1, u32::MAX, 0));
    for id in ids {
        assert!(is_released(&mut value, id, NOW + 10), "{id} is open");
    }
}

#[test]
fn ids_of_an_earlier_life_of_the_key_are_unknown() {
    let mut value = Vec::new();
    let old = make(&mut value, 60_000, NOW);
    value.clear();
    let new = make(&mut value, 60_000, NOW + 1);
    assert_eq!(old.seq, new.seq);
    assert!(!is_released(&mut value, old, NOW + 1));
    assert!(is_released(&mut value, new, NOW + 1));
}

#[test]
fn a_lease_ends_exactly_when_it_says() {
    let mut value = Vec::new();
    let id = make(&mut value, 100, NOW);
    assert_eq!((open(&value, NOW + 99), open(&value, NOW + 100)), (1, 0));
    assert!(!is_released(&mut value.clone(), id, NOW + 100));
    assert!(is_released(&mut value, id, NOW + 99));
}

#[test]
fn an_id_is_two_decimal_numbers() {
    let id = ReservationId { ms: NOW, seq: 7 };
    assert_eq!(ReservationId::parse(id.to_string().as_bytes()), Some(id));
    let longest = ReservationId {
        ms: u64::MAX,
        seq: u32::MAX,
    };
    assert_eq!(
        longest.write(&mut IdText::default()),
        longest.to_string().as_bytes()
    );
    let bad: [&[u8]; 9] = [
        b"",
        b"-",
        b"1",
        b"1-",
        b"-1",
        b"1-2-3",
        b"+1-2",
        b"1- 2",
        b"99999999999999999999-1",
    ];
    for text in bad {
        assert_eq!(ReservationId::parse(text), None, "{}", text.escape_ascii());
    }
}

/// One step of many callers: reserve with a lease, or end one of the reservations made so far.
#[derive(Debug, Clone)]
enum Step {
    Make(u32),
    Release(prop::sample::Index),
    Wait(u64),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_log_remembers_what_a_list_would(
        steps in prop::collection::vec(prop_oneof![
            20 => prop_oneof![Just(500_u32), 1_u32..2_000, Just(3_600_000)].prop_map(Step::Make),
            12 => any::<prop::sample::Index>().prop_map(Step::Release),
            1 => (0_u64..1_500).prop_map(Step::Wait),
        ], 1..6_000),
    ) {
        let (mut value, mut replica, mut now) = (Vec::new(), Vec::new(), NOW);
        let mut made: Vec<(ReservationId, u64)> = Vec::new();
        for step in steps {
            let changes = match step {
                Step::Wait(ms) => {
                    now += ms;
                    continue;
                }
                Step::Make(lease_ms) => {
                    let request = Request { recipients: 1, wish: Wish::default(), lane: Lane::Normal, lease_ms };
                    let answer = reserve(&mut value, &PLENTY, &request, now).unwrap();
                    let Verdict::Allowed(id) = answer.verdict else { panic!("plenty is left") };
                    made.push((id, now + u64::from(lease_ms)));
                    let open = made.iter().filter(|&&(_, until)| now < until).count();
                    if open > MOST_OPEN {
                        let oldest = made.iter().position(|&(_, until)| now < until).unwrap();
                        made.remove(oldest);
                    }
                    answer.changes
                }
                Step::Release(index) if !made.is_empty() => {
                    let place = index.index(made.len());
                    let (id, until) = made[place];
                    let changes = release(&mut value, PLENTY.kind, id, now).unwrap();
                    prop_assert_eq!(changes.is_some(), now < until);
                    if now < until {
                        made.remove(place);
                    }
                    let Some(changes) = changes else { continue };
                    changes
                }
                Step::Release(_) => continue,
            };
            match changes {
                Changes::Whole => value.clone_into(&mut replica),
                Changes::Ranges(ranges) => for range in ranges.iter() {
                    replica.resize(replica.len().max(range.end), 0);
                    replica[range.clone()].copy_from_slice(&value[range]);
                },
            }
            prop_assert!(replica == value);
            prop_assert_eq!(open(&value, now), made.iter().filter(|&&(_, until)| now < until).count());
        }
    }
}
