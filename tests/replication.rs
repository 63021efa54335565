//! Replicas and the append-only file get plain commands, and come to the same state.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use redis::Connection;
use test_support::{Calls, NOON_MS, RedisServer, Words};

const KEY: &str = "mailrl:orders@example.com";

/// The part of a value that is advice and not replicated.
const TURNS: std::ops::Range<usize> = 32..128;

/// A server and its replica, with the same time.
struct Pair {
    master: RedisServer,
    replica: RedisServer,
}

impl Pair {
    fn start() -> Self {
        let server = |arguments: [&str; 2]| {
            let server = RedisServer::builder()
                .module([])
                .with_clock()
                .arguments(["--appendonly", "yes", "--appendfsync", "no"])
                .arguments(["--repl-diskless-sync-delay", "0"])
                .arguments(["--repl-ping-replica-period", "3600"])
                .arguments(arguments)
                .start();
            server.stop_clock_at_ms(NOON_MS);
            server
        };
        let master = server(["--replica-read-only", "yes"]);
        let pair = Self {
            replica: server(["--replicaof", &format!("127.0.0.1 {}", master.port())]),
            master,
        };
        pair.wait();
        pair
    }

    /// Waits until the replica has all that the master sent.
    fn wait(&self) {
        self.master.wait_for_replica(&self.replica);
    }

    fn move_clock_ms(&self, delta: i64) {
        self.master.move_clock_ms(delta);
        self.replica.move_clock_ms(delta);
    }

    fn set_window(&self, kind: &str) {
        for server in [&self.master, &self.replica] {
            server
                .connection()
                .ask::<()>(&format!("CONFIG SET mailrl.window {kind}"));
        }
    }

    /// Both say the same of every mailbox.
    fn say_the_same(&self, keys: &[String]) {
        self.wait();
        let (mut master, mut replica) = (self.master.connection(), self.replica.connection());
        for key in keys {
            assert_eq!(replica.status(key), master.status(key), "{key}");
            let expires_at = |redis: &mut Connection| redis.snapshot(key.as_bytes()).expires_at;
            assert_eq!(expires_at(&mut replica), expires_at(&mut master), "{key}");
        }
    }

    /// Both hold the same bytes of every mailbox, once each has had a write.
    fn hold_the_same(&self, keys: &[String]) {
        let mut master = self.master.connection();
        for key in keys {
            master.pause(key, 0);
            master.limits(key, "RESET");
            master.allowed(key, "1 PERMINUTE 1000000 PERDAY 10000000");
        }
        self.say_the_same(keys);
        let mut replica = self.replica.connection();
        for key in keys {
            let [of_master, of_replica] = [&mut master, &mut replica].map(|redis| {
                let mut value = redis.value(key);
                value[TURNS].fill(0);
                value
            });
            assert_eq!(of_replica, of_master, "{key}");
        }
    }
}

/// Calls of all kinds on all mailboxes.
struct Traffic {
    random: StdRng,
    keys: Vec<String>,
    ids: Vec<(String, String)>,
}

impl Traffic {
    fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            keys: (0..6).map(|nth| format!("mailrl:{nth}")).collect(),
            ids: Vec::new(),
        }
    }

    fn call(&mut self, redis: &mut Connection) {
        let key = self.keys.choose(&mut self.random).expect("some keys").clone();
        match self.random.random_range(0..21) {
            0..12 => {
                let options = [
                    "",
                    " LEASE 3",
                    " LEASE 700 CONCURRENT 5",
                    " PERMINUTE 500 LEASE 3600000",
                    " PERMINUTE 500 PERDAY 100000",
                    " PERDAY 50",
                    " BULK",
                ];
                let options = options.choose(&mut self.random).expect("some options");
                let recipients = self.random.random_range(1..20);
                let answer = redis.reserve(&key, &format!("{recipients}{options}"));
                if answer.allowed {
                    self.ids.push((key, answer.reservation));
                }
            }
            12..19 if !self.ids.is_empty() => {
                let index = self.random.random_range(0..self.ids.len());
                let (key, id) = self.ids.swap_remove(index);
                if self.random.random_bool(0.5) {
                    redis.release(&key, &id);
                } else {
                    redis.commit(&key, &id);
                }
            }
            19 => {
                let limits = ["", "PERMINUTE 30", "PERDAY 500 CONCURRENT 9", "RESET", "RESET"];
                redis.limits(&key, limits.choose(&mut self.random).expect("some limits"));
            }
            _ => {
                let pause_ms = [0, 0, 40, 3_000].choose(&mut self.random).copied();
                redis.pause(&key, pause_ms.unwrap_or_default());
            }
        }
    }
}

fn names(commands: &[Words]) -> BTreeSet<String> {
    let name = |words: &Words| String::from_utf8_lossy(&words[0]).to_ascii_uppercase();
    commands.iter().map(name).collect()
}

#[test]
fn a_replica_comes_to_the_state_of_its_master() {
    let pair = Pair::start();
    let mut master = pair.master.connection();
    let mut traffic = Traffic::new(1);
    for round in 0..40 {
        for _ in 0..60 {
            traffic.call(&mut master);
            let step = traffic.random.random_range(0..400);
            pair.move_clock_ms(step);
        }
        match round % 8 {
            3 => pair.set_window("rolling"),
            5 => pair.move_clock_ms(3_600_000),
            6 => {
                pair.move_clock_ms(-3_600_000);
                // How far it stepped each server measures with its next call, if none that writes
                // comes before.
                pair.hold_the_same(&traffic.keys);
            }
            7 => pair.set_window("calendar"),
            _ => {}
        }
        pair.say_the_same(&traffic.keys);
        if round % 4 == 3 {
            pair.hold_the_same(&traffic.keys);
        }
    }
    pair.hold_the_same(&traffic.keys);
    let allowed = [
        "SELECT",
        "SET",
        "SETRANGE",
        "PEXPIREAT",
        "PERSIST",
        "MULTI",
        "EXEC",
    ]
    .map(String::from);
    for server in [&pair.master, &pair.replica] {
        let sent = names(&server.appended_commands());
        assert!(sent.is_subset(&allowed.clone().into()), "{sent:?}");
    }
}

#[test]
fn many_open_reservations_that_come_and_go_are_the_same_on_the_replica() {
    for kind in ["calendar", "rolling"] {
        let pair = Pair::start();
        pair.set_window(kind);
        let keys = [KEY.to_owned()];
        let mut master = pair.master.connection();
        for (reservations, lease_ms) in [(1_500, 60_000), (3, 1), (200, 5_000), (90, 20), (400, 1)] {
            let mut ids = Vec::new();
            for nth in 0..reservations {
                ids.push(master.allowed(KEY, &format!("2 PERMINUTE 10000 LEASE {lease_ms}")));
                pair.move_clock_ms(i64::from(nth % 3 == 0));
            }
            pair.say_the_same(&keys);
            for id in ids.iter().step_by(3) {
                master.release(KEY, id);
            }
            for id in ids.iter().skip(1).step_by(4) {
                master.commit(KEY, id);
            }
            pair.say_the_same(&keys);
            pair.hold_the_same(&keys);
            pair.move_clock_ms(60_000);
        }
    }
}

#[test]
fn a_call_that_changes_nothing_replicates_nothing() {
    let pair = Pair::start();
    let mut redis = pair.master.connection();
    let id = redis.allowed(KEY, "1");
    redis.commit(KEY, &id);
    pair.wait();
    let written = |redis: &mut Connection| {
        (
            pair.master.appended_len(),
            redis.counter("replication", "master_repl_offset"),
        )
    };
    let before = written(&mut redis);
    redis.denied(KEY, "1 PERMINUTE 1");
    redis.denied(KEY, "1 PERDAY 1");
    redis.refusal(&format!("MAILRL.RESERVE {KEY} 9001"));
    redis.refusal(&format!("MAILRL.RESERVE {KEY} 0"));
    assert!(!redis.release(KEY, &id));
    assert!(!redis.commit(KEY, &id));
    redis.pause(KEY, 0);
    redis.limits(KEY, "");
    redis.limits(KEY, "RESET");
    redis.status(KEY);
    redis.refusal("MAILRL.RESERVE mailrl:new 9001");
    redis.pause("mailrl:new", 0);
    redis.limits("mailrl:new", "");
    redis.limits("mailrl:new", "RESET");
    // The state that a clock's step makes is not replicated with a call that is denied.
    pair.move_clock_ms(-3_600_000);
    redis.denied(KEY, "1 PERMINUTE 1");
    assert_eq!(written(&mut redis), before);

    // It is with the next one that writes.
    redis.allowed(KEY, "1");
    assert!(written(&mut redis) > before);
    pair.hold_the_same(&[KEY.to_owned()]);
}

#[test]
fn a_transaction_and_a_script_are_the_same_on_the_replica() {
    let pair = Pair::start();
    let mut redis = pair.master.connection();
    redis::pipe()
        .atomic()
        .cmd("MAILRL.RESERVE")
        .arg(KEY)
        .arg(3)
        .cmd("MAILRL.RESERVE")
        .arg(KEY)
        .arg(4)
        .cmd("MAILRL.PAUSE")
        .arg("mailrl:other")
        .arg(5_000)
        .cmd("MAILRL.RESERVE")
        .arg("mailrl:other")
        .arg(1)
        .exec(&mut redis)
        .expect("a transaction");
    let script = "for _ = 1, 3 do
                      local reply = redis.call('MAILRL.RESERVE', KEYS[1], 2, 'PERMINUTE', 4)
                      if reply[1] == 1 then redis.call('MAILRL.COMMIT', KEYS[1], reply[6]) end
                  end";
    for _ in 0..2 {
        redis::Script::new(script)
            .key(KEY)
            .invoke::<()>(&mut redis)
            .expect("no reply");
    }
    assert_eq!(redis.used(KEY), (4, 11));
    pair.say_the_same(&[KEY.to_owned(), "mailrl:other".to_owned()]);
    pair.hold_the_same(&[KEY.to_owned(), "mailrl:other".to_owned()]);
    assert!(
        !names(&pair.master.appended_commands())
            .iter()
            .any(|name| name.contains("MAILRL"))
    );
}

#[test]
fn a_mailbox_in_another_database_is_the_same_on_the_replica() {
    let pair = Pair::start();
    let (mut master, mut replica) = (pair.master.connection(), pair.replica.connection());
    for database in [3, 0] {
        for redis in [&mut master, &mut replica] {
            redis.ask::<()>(&format!("SELECT {database}"));
        }
        for _ in 0..=database {
            master.allowed(KEY, "2");
        }
        pair.wait();
        assert_eq!(replica.status(KEY), master.status(KEY));
        assert_eq!(replica.used(KEY).0, database + 1);
    }
}

#[test]
fn a_replica_answers_a_status_and_takes_no_reservation() {
    let pair = Pair::start();
    let id = pair.master.connection().allowed(KEY, "5");
    pair.wait();
    let mut replica = pair.replica.connection();
    assert_eq!(replica.used(KEY), (1, 5));
    for write in [
        format!("MAILRL.RESERVE {KEY} 1"),
        format!("MAILRL.RELEASE {KEY} {id}"),
        format!("MAILRL.COMMIT {KEY} {id}"),
        format!("MAILRL.PAUSE {KEY} 1"),
        format!("MAILRL.LIMITS {KEY}"),
        format!("MAILRL.LIMITS {KEY} PERMINUTE 1"),
    ] {
        let error = replica.refusal(&write);
        assert!(error.starts_with("READONLY "), "{error}");
    }
}

#[test]
fn a_replica_that_is_promoted_goes_on_counting() {
    let mut pair = Pair::start();
    let mut master = pair.master.connection();
    let (released, committed) = (master.allowed(KEY, "5"), master.allowed(KEY, "6"));
    pair.wait();
    pair.master.kill();
    let mut promoted = pair.replica.connection();
    promoted.ask::<()>("REPLICAOF NO ONE");
    assert_eq!(promoted.denied(KEY, "1 PERMINUTE 2").0, "minute");
    assert!(promoted.release(KEY, &released));
    assert!(promoted.commit(KEY, &committed));
    let next = promoted.allowed(KEY, "7 PERMINUTE 2");
    assert_eq!(promoted.used(KEY), (2, 13));
    assert_ne!(next, released);
    assert!(promoted.release(KEY, &next));
}
