//! Many callers at once, one place left.

use std::sync::Barrier;
use std::thread;

use test_support::{Calls, RedisServer};

const ROUNDS: usize = 3_000;

/// Has two connections ask for the same place at the same time, in each round for a new one.
fn winners(options: &str) -> Vec<[bool; 2]> {
    let server = RedisServer::at_noon([]);
    let (server, barrier) = (&server, &Barrier::new(2));
    let racer = move || {
        let mut redis = server.connection();
        let round = |round| {
            barrier.wait();
            redis.reserve(&format!("mailrl:{round}"), options).allowed
        };
        (0..ROUNDS).map(round).collect::<Vec<_>>()
    };
    let (first, second) = thread::scope(|scope| {
        let (first, second) = (scope.spawn(racer), scope.spawn(racer));
        (first.join().expect("a racer"), second.join().expect("a racer"))
    });
    first.into_iter().zip(second).map(<[bool; 2]>::from).collect()
}

fn exactly_one_wins_each(options: &str) {
    let rounds = winners(options);
    for (round, won) in rounds.iter().enumerate() {
        assert_ne!(won[0], won[1], "{options}: round {round}");
    }
    let first = rounds.iter().filter(|won| won[0]).count();
    assert!(
        (1..ROUNDS).contains(&first),
        "{options}: no race, {first} of {ROUNDS}"
    );
}

#[test]
fn exactly_one_of_two_gets_the_last_message_of_the_minute() {
    exactly_one_wins_each("1 PERMINUTE 1");
}

#[test]
fn exactly_one_of_two_gets_the_last_recipients_of_the_day() {
    exactly_one_wins_each("3 PERDAY 5");
}

#[test]
fn exactly_one_of_two_gets_the_last_place_among_the_concurrent_sends() {
    exactly_one_wins_each("1 CONCURRENT 1");
}

#[test]
fn many_callers_together_get_as_much_as_the_limit_and_no_more() {
    let server = RedisServer::at_noon(["per-minute", "500", "recipients-per-day", "1000"]);
    let caller = || {
        let mut redis = server.connection();
        let answers = (0..300).map(|nth| redis.reserve("mailrl:shared", &(nth % 5 + 1).to_string()));
        answers.filter(|answer| answer.allowed).count() as u64
    };
    let allowed: u64 = thread::scope(|scope| {
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(caller)).collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("a caller"))
            .sum()
    });
    let (messages, recipients) = server.connection().used("mailrl:shared");
    assert_eq!(messages, allowed);
    assert!(
        messages == 500 || recipients == 1_000,
        "{messages} and {recipients}"
    );
}
