//! With calendar windows and without turns the module allows and denies exactly what a Lua script in its place does.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use redis::{Connection, Script};
use test_support::{Calls, NOON_MS, RedisServer};

const SCRIPT: &str = include_str!("lua/check_and_reserve.lua");
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;

/// Messages a minute and recipients a day of each mailbox.
const LIMITS: [(u64, u64); 5] = [(1, 10), (3, 40), (25, 300), (7, 2_000), (2, 500)];

#[derive(Debug, PartialEq, Eq)]
struct Decision {
    allowed: bool,
    reason: String,
    retry_after_ms: u64,
}

/// A call of the mailbox of this number, at the time that its server's clock stands still at.
struct Call {
    mailbox: usize,
    recipients: u64,
    now_ms: u64,
}

fn ask_module(redis: &mut Connection, call: &Call) -> Decision {
    let (per_minute, per_day) = LIMITS[call.mailbox];
    let arguments = format!("{} PERMINUTE {per_minute} PERDAY {per_day}", call.recipients);
    let answer = redis.reserve(&format!("mailrl:{}", call.mailbox), &arguments);
    Decision {
        allowed: answer.allowed,
        reason: answer.reason,
        retry_after_ms: answer.retry_after_ms,
    }
}

fn ask_script(redis: &mut Connection, script: &Script, call: &Call) -> Decision {
    let (per_minute, per_day) = LIMITS[call.mailbox];
    let (allowed, reason, retry_after_ms): (u8, String, u64) = script
        .key(format!("{{{}}}:minute:{}", call.mailbox, call.now_ms / MINUTE_MS))
        .key(format!("{{{}}}:day:{}", call.mailbox, call.now_ms / DAY_MS))
        .arg(call.recipients)
        .arg(per_minute)
        .arg(per_day)
        .invoke(redis)
        .expect("three values");
    Decision {
        allowed: allowed == 1,
        reason,
        retry_after_ms,
    }
}

/// Whether both are right. Where a day and its last minute end together, both reasons are.
fn same(of_module: &Decision, of_script: &Decision, call: &Call) -> bool {
    let opens_at = call.now_ms + of_script.retry_after_ms;
    let midnight = opens_at.is_multiple_of(DAY_MS);
    let reasons = (of_module.reason.as_str(), of_script.reason.as_str());
    of_module.allowed == of_script.allowed
        && of_module.retry_after_ms == of_script.retry_after_ms
        && (reasons.0 == reasons.1 || midnight && reasons == ("minute", "day"))
}

#[test]
fn the_module_decides_as_the_script_does() {
    let server = RedisServer::at_noon(["pacing", "no"]);
    let mut redis = server.connection();
    let script = Script::new(SCRIPT);
    let mut random = StdRng::seed_from_u64(20_270_615);
    let mut seen = BTreeMap::new();
    let mut now_ms = NOON_MS;
    for _ in 0..6_000 {
        let mailbox = random.random_range(0..LIMITS.len());
        let most = LIMITS[mailbox].1.min(30);
        let call = Call {
            mailbox,
            recipients: random.random_range(1..=most),
            now_ms,
        };
        let of_module = ask_module(&mut redis, &call);
        let of_script = ask_script(&mut redis, &script, &call);
        *seen.entry(of_module.reason.clone()).or_insert(0) += 1;
        assert!(
            same(&of_module, &of_script, &call),
            "at {now_ms}, mailbox {mailbox}, {} recipients: {of_module:?}, but {of_script:?}",
            call.recipients
        );
        now_ms += match random.random_range(0..100) {
            0 => random.random_range(0..3 * 3_600_000),
            1 => random.random_range(0..2 * MINUTE_MS),
            // To the last moment of a minute or of a day, and over it.
            2 => MINUTE_MS - 1 - now_ms % MINUTE_MS,
            3 if random.random_bool(0.3) => DAY_MS - 1 - now_ms % DAY_MS,
            4..8 => 1,
            _ => random.random_range(0..1_500),
        };
        server.stop_clock_at_ms(now_ms);
    }
    for reason in ["ok", "minute", "day"] {
        assert!(seen[reason] > 400, "{seen:?}");
    }
}
