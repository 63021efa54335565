//! Random calls over a raw socket, pipelined: valid ones, mutated ones, other commands on the same
//! keys, bytes that are no call at all. Each is answered, and the server is alive at the end.
//!
//! `MAILRL_RAW_CALLS` is how many (a million unless told otherwise), `MAILRL_SEED` which ones: the
//! seed is printed, and the same one makes the same calls.

mod reply;
mod sender;

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::str::FromStr;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use reply::Reply;
use sender::Sender;
use test_support::{Calls, RedisServer};

/// How many calls are sent before their replies are read.
const BATCH: usize = 500;
/// How long a reply may take.
const DEADLINE: Duration = Duration::from_mins(1);

fn setting<T: FromStr>(name: &str, default: T) -> T {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {text}"))
    })
}

#[test]
fn every_random_call_is_answered_and_the_server_lives() {
    let calls: usize = setting("MAILRL_RAW_CALLS", 1_000_000);
    let seed: u64 = setting("MAILRL_SEED", 0x6d61_696c_726c);
    println!("{calls} calls, MAILRL_SEED={seed}");
    let server = RedisServer::at_noon([]);
    let stream = connect(&server);
    let mut replies = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut sender = Sender::new(seed);
    let mut done = 0;
    while done < calls {
        while sender.awaited.len() < BATCH {
            sender.something();
        }
        done += sender.awaited.len();
        (&stream).write_all(&sender.sent).expect("a server that reads on");
        sender.sent.clear();
        for awaited in std::mem::take(&mut sender.awaited) {
            let reply = Reply::read(&mut replies)
                .unwrap_or_else(|error| panic!("no reply to {}: {error}\n{}", show(&awaited), server.log()));
            assert!(suits(&awaited, &reply), "{}: {reply:?}", show(&awaited));
            sender.note(&awaited, reply);
        }
        if sender.random.random_bool(0.05) {
            hang_up_after_garbage(&server, &mut sender.random);
        }
        server.move_clock_ms(sender.clock_step());
    }
    lives(&server);
}

fn connect(server: &RedisServer) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("a server that listens");
    stream
        .set_read_timeout(Some(DEADLINE))
        .expect("a timeout that is not zero");
    stream
}

/// Bytes that are no protocol: the server says so and hangs up, or waits for the rest in vain.
fn hang_up_after_garbage(server: &RedisServer, random: &mut Xoshiro256PlusPlus) {
    let mut stream = connect(server);
    let starts: [&[u8]; 6] = [
        b"*3\r\n$-5\r\n",
        b"*9999999999\r\n",
        b"*2\r\n:1\r\n",
        b"$5\r\n",
        b"*1\r\n$9\r\nMAILRL",
        b"",
    ];
    let mut bytes = starts.choose(random).expect("one of six").to_vec();
    let mut noise = [0; 200];
    random.fill(&mut noise);
    bytes.extend(noise);
    // The server may have hung up in the middle of it.
    let _ = stream.write_all(&bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let waited_in_vain =
        |error: io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let end = stream.read_to_end(&mut answer);
    assert!(!end.is_err_and(waited_in_vain), "the server did not hang up");
}

/// Whether this may be the reply to these words.
fn suits(words: &[Vec<u8>], reply: &Reply) -> bool {
    // Redis hashes the whole name but compares it as a C string: of two names that share a bucket,
    // which hangs on the server's own random seed, the one that goes on after a NUL is found too.
    let name = words
        .first()
        .and_then(|word| word.split(|&byte| byte == 0).next());
    let name = name.map(<[u8]>::to_ascii_uppercase).unwrap_or_default();
    match (name.as_slice(), reply) {
        (_, Reply::Error(text)) => !text.starts_with(b"ERR mailrl met a fault of its own"),
        // Within MULTI.
        (_, Reply::Status(text)) if text == b"QUEUED" => true,
        (b"MAILRL.RESERVE", Reply::Array(parts)) => parts.len() == 6,
        (b"MAILRL.RELEASE" | b"MAILRL.COMMIT", Reply::Integer(closed)) => (0..=1).contains(closed),
        (b"MAILRL.PAUSE", Reply::Integer(until)) => *until >= 0,
        (b"MAILRL.LIMITS", Reply::Array(parts)) => parts.len() == 4,
        (b"MAILRL.STATUS", Reply::Array(parts)) => parts.len() == 12,
        (name, _) => !name.starts_with(b"MAILRL."),
    }
}

fn show(words: &[Vec<u8>]) -> String {
    let words = words
        .iter()
        .map(|word| word[..word.len().min(80)].escape_ascii().to_string());
    words.collect::<Vec<_>>().join(" ")
}

/// It answers, it was not started anew, nothing in its log tells of a fault, and a new mailbox works.
fn lives(server: &RedisServer) {
    let mut redis = server.connection();
    assert_eq!(redis.ask::<String>("PING"), "PONG");
    assert!(redis.counter("mailrl", "mailrl_allowed") > 0);
    redis.allowed("mailrl:new@example.com", "1 PERMINUTE 5 PERDAY 10");
    let log = server.log();
    assert_eq!(log.matches("Ready to accept connections").count(), 1, "{log}");
    for fault in ["panicked", "BUG REPORT", "ASSERTION FAILED", "crashed"] {
        assert!(!log.contains(fault), "{log}");
    }
}
