//! A server has several databases: a mailbox is that of the database it is called in, and goes where its
//! key goes.

use test_support::{Calls, NOON_MS, RedisServer};

const KEY: &str = "mailrl:orders@example.com";

/// A server with the mailbox in databases 0 (one message to 3) and 5 (two to 4 each); gives an open
/// reservation of each, and stays in database 0.
fn server_with_two() -> (RedisServer, redis::Connection, [String; 2]) {
    let server = RedisServer::at_noon([]);
    let mut redis = server.connection();
    let in_0 = redis.allowed(KEY, "3");
    redis.ask::<()>("SELECT 5");
    redis.allowed(KEY, "4");
    let in_5 = redis.allowed(KEY, "4");
    redis.ask::<()>("SELECT 0");
    (server, redis, [in_0, in_5])
}

#[test]
fn a_mailbox_has_a_budget_of_its_own_in_each_database() {
    let (_server, mut redis, [in_0, in_5]) = server_with_two();
    assert_eq!(redis.used(KEY), (1, 3));
    assert!(redis.release(KEY, &in_0));
    redis.ask::<()>("SELECT 5");
    assert_eq!(redis.used(KEY), (2, 8));
    redis.denied(KEY, "1 PERMINUTE 2");
    assert!(redis.release(KEY, &in_5));
    redis.ask::<()>("FLUSHDB");
    redis.allowed(KEY, "1 PERMINUTE 1");
    redis.ask::<()>("SELECT 0");
    assert_eq!(redis.used(KEY), (0, 0));
    assert_eq!(redis.ask::<u8>(&format!("EXISTS {KEY}")), 1);
}

#[test]
fn databases_that_are_swapped_swap_their_budgets() {
    let (_server, mut redis, [in_0, in_5]) = server_with_two();
    redis.ask::<()>("SWAPDB 0 5");
    assert_eq!(redis.used(KEY), (2, 8));
    assert!(redis.commit(KEY, &in_5));
    redis.allowed(KEY, "1 PERMINUTE 3 PERDAY 9");
    redis.ask::<()>("SELECT 5");
    assert_eq!(redis.used(KEY), (1, 3));
    assert!(redis.release(KEY, &in_0));
}

#[test]
fn a_mailbox_moves_and_is_copied_to_another_database_with_all_that_is_open() {
    let (_server, mut redis, [in_0, _]) = server_with_two();
    let expires_at = redis.snapshot(KEY.as_bytes()).expires_at;
    assert_eq!(redis.ask::<u8>(&format!("COPY {KEY} {KEY} DB 7")), 1);
    assert_eq!(redis.ask::<u8>(&format!("MOVE {KEY} 6")), 1);
    assert_eq!(redis.used(KEY), (0, 0));
    for database in [6, 7] {
        redis.ask::<()>(&format!("SELECT {database}"));
        assert_eq!(redis.snapshot(KEY.as_bytes()).expires_at, expires_at);
        assert_eq!(redis.used(KEY), (1, 3));
        assert!(redis.release(KEY, &in_0), "{database}");
        redis.allowed(KEY, "1");
    }
}

#[test]
fn each_database_is_what_it_was_after_a_restart() {
    let mut server = RedisServer::builder()
        .module([])
        .with_clock()
        .arguments(["--appendonly", "yes", "--appendfsync", "always"])
        .start();
    server.stop_clock_at_ms(NOON_MS);
    let mut redis = server.connection();
    let ids: Vec<_> = (0..16)
        .map(|database| {
            redis.ask::<()>(&format!("SELECT {database}"));
            redis.allowed(KEY, &format!("{}", database + 1));
            redis.allowed(KEY, "1")
        })
        .collect();
    server.kill();
    server.restart();
    let mut redis = server.connection();
    for (database, id) in ids.iter().enumerate() {
        redis.ask::<()>(&format!("SELECT {database}"));
        assert_eq!(redis.used(KEY), (2, database as u64 + 2));
        assert!(redis.release(KEY, id));
    }
}
