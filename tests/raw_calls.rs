//! Random calls over a raw socket, pipelined: valid ones, mutated ones, other commands on the same
//! keys, bytes that are no call at all. Each is answered, and the server is alive at the end.
//!
//! `MAILRL_RAW_CALLS` is how many (a million unless told otherwise), `MAILRL_SEED` which ones: the
//! seed is printed, and the same one makes the same calls.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::str::FromStr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::{IndexedMutRandom, IndexedRandom, SliceRandom};
use rand::{Rng, RngExt, SeedableRng};
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
    let mut sender = Sender {
        random: StdRng::seed_from_u64(seed),
        keys: keys(),
        ids: vec![b"1813060800000-0".to_vec()],
        sent: Vec::new(),
        awaited: Vec::new(),
    };
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
            sender.note_id(reply);
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

/// Names of keys: few, so that calls meet each other's values.
fn keys() -> Vec<Vec<u8>> {
    let odd: [&[u8]; 8] = [
        b"",
        b"\0",
        b"mailrl:a\0b@example.com",
        b"\xff\xfe\x80",
        b"%s%n%p\r\n",
        b"{mailrl}:b@example.com",
        "mailrl:ü@example.com".as_bytes(),
        &[b'k'; 5_000],
    ];
    let plain = (0..12).map(|n| format!("mailrl:{n}@example.com").into_bytes());
    plain.chain(odd.map(<[u8]>::to_vec)).collect()
}

/// Bytes that are no protocol: the server says so and hangs up, or waits for the rest in vain.
fn hang_up_after_garbage(server: &RedisServer, random: &mut StdRng) {
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
        |error: std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let end = stream.read_to_end(&mut answer);
    assert!(!end.is_err_and(waited_in_vain), "the server did not hang up");
}

/// What the server says to a call. Error texts may hold any byte, which clients do not expect.
#[derive(Debug)]
enum Reply {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Vec<Reply>),
}

impl Reply {
    fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        let [kind, text @ .., b'\r', b'\n'] = line.as_slice() else {
            return Err(io::Error::other(format!("cut off: {}", line.escape_ascii())));
        };
        let number = || {
            let text = std::str::from_utf8(text).map_err(io::Error::other)?;
            text.parse::<i64>().map_err(io::Error::other)
        };
        match kind {
            b'+' => Ok(Self::Status(text.to_vec())),
            b'-' => Ok(Self::Error(text.to_vec())),
            b':' => number().map(Self::Integer),
            b'*' => (0..number()?)
                .map(|_| Self::read(from))
                .collect::<io::Result<_>>()
                .map(Self::Array),
            b'$' => {
                let Ok(len) = usize::try_from(number()?) else {
                    return Ok(Self::Bulk(None));
                };
                let mut bytes = vec![0; len + 2];
                from.read_exact(&mut bytes)?;
                bytes.truncate(len);
                Ok(Self::Bulk(Some(bytes)))
            }
            _ => Err(io::Error::other(format!("no reply: {}", line.escape_ascii()))),
        }
    }
}

/// Whether this may be the reply to these words.
fn suits(words: &[Vec<u8>], reply: &Reply) -> bool {
    let name = words
        .first()
        .map(|word| word.to_ascii_uppercase())
        .unwrap_or_default();
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

/// Makes calls.
struct Sender {
    random: StdRng,
    keys: Vec<Vec<u8>>,
    /// Ids of reservations that were made lately.
    ids: Vec<Vec<u8>>,
    sent: Vec<u8>,
    /// The calls whose replies are still to be read.
    awaited: Vec<Vec<Vec<u8>>>,
}

impl Sender {
    /// Some calls that belong together.
    fn something(&mut self) {
        match self.random.random_range(0..100) {
            0..50 => {
                let words = self.valid();
                self.send(words);
            }
            50..78 => {
                let mut words = self.valid();
                for _ in 0..self.random.random_range(1..4) {
                    self.mutate(&mut words);
                }
                self.send(words);
            }
            78..88 => {
                let words = self.other_command();
                self.send(words);
            }
            88..91 => {
                let words = (0..self.random.random_range(1..8))
                    .map(|_| self.noise())
                    .collect();
                self.send(words);
            }
            91..94 => self.in_a_script(),
            94..96 => self.in_a_transaction(),
            96..98 => {
                let words = self.configuration();
                self.send(words);
            }
            _ => self.oddly_framed(),
        }
    }

    fn send(&mut self, words: Vec<Vec<u8>>) {
        write!(self.sent, "*{}\r\n", words.len()).expect("memory");
        for word in &words {
            write!(self.sent, "${}\r\n", word.len()).expect("memory");
            self.sent.extend_from_slice(word);
            self.sent.extend_from_slice(b"\r\n");
        }
        // To no words there is no reply.
        if !words.is_empty() {
            self.awaited.push(words);
        }
    }

    /// A call of the module with arguments that are right.
    fn valid(&mut self) -> Vec<Vec<u8>> {
        let key = self.key();
        let (name, arguments) = match self.random.random_range(0..20) {
            0..9 => {
                let mut arguments = vec![self.number(1, 300)];
                self.options(
                    &mut arguments,
                    &["PERMINUTE", "PERDAY", "CONCURRENT", "LEASE", "BULK"],
                );
                ("MAILRL.RESERVE", arguments)
            }
            9..12 => ("MAILRL.RELEASE", vec![self.id()]),
            12..15 => ("MAILRL.COMMIT", vec![self.id()]),
            15..16 => ("MAILRL.PAUSE", vec![self.number(0, 90_000)]),
            16..18 => {
                let mut arguments = Vec::new();
                if self.random.random_bool(0.4) {
                    arguments.push(b"RESET".to_vec());
                } else {
                    self.options(&mut arguments, &["PERMINUTE", "PERDAY", "CONCURRENT"]);
                }
                ("MAILRL.LIMITS", arguments)
            }
            _ => ("MAILRL.STATUS", Vec::new()),
        };
        [name.as_bytes().to_vec(), key]
            .into_iter()
            .chain(arguments)
            .collect()
    }

    fn options(&mut self, arguments: &mut Vec<Vec<u8>>, names: &[&str]) {
        let mut names = names.to_vec();
        names.shuffle(&mut self.random);
        let count = self.random.random_range(0..=names.len());
        for name in &names[..count] {
            arguments.push(name.as_bytes().to_vec());
            if *name != "BULK" {
                arguments.push(self.number(1, 1_000));
            }
        }
    }

    fn mutate(&mut self, words: &mut Vec<Vec<u8>>) {
        let Some(place) = words.len().checked_sub(1) else {
            return;
        };
        // Seldom the name: what is left of it is an unknown command.
        let first = usize::from(self.random.random_bool(0.9)).min(place);
        let place = self.random.random_range(first..=place);
        match self.random.random_range(0..9) {
            0 => drop(words.remove(place)),
            1 => words.insert(place, words[place].clone()),
            2 => words.insert(place, self.noise()),
            3 => words[place] = self.noise(),
            4 => words[place] = self.odd_number(),
            5 => {
                let other = self.random.random_range(0..words.len());
                words.swap(place, other);
            }
            6 => words[place].push(0),
            7 => words[place].make_ascii_lowercase(),
            _ => {
                let bit = 1 << self.random.random_range(0..8);
                if let Some(byte) = words[place].choose_mut(&mut self.random) {
                    *byte ^= bit;
                }
            }
        }
    }

    /// A command of the server's own that leaves something else under the key.
    fn other_command(&mut self) -> Vec<Vec<u8>> {
        let (key, other) = (self.key(), self.key());
        let noise = self.noise();
        let offset = self.number(0, 3_000);
        let words: Vec<&[u8]> = match self.random.random_range(0..18) {
            0 => vec![b"SET", &key, &noise],
            1 => vec![b"SETRANGE", &key, &offset, &noise],
            2 => vec![b"SETBIT", &key, &offset, b"1"],
            3 => vec![b"APPEND", &key, &noise],
            4 => vec![b"INCR", &key],
            5 => vec![b"LPUSH", &key, &noise],
            6 => vec![b"SADD", &key, &noise],
            7 => vec![b"HSET", &key, &noise, b"1"],
            8 => vec![b"ZADD", &key, b"1", &noise],
            9 => vec![b"XADD", &key, b"*", b"field", &noise],
            10 => vec![b"PFADD", &key, &noise],
            11 => vec![b"PEXPIRE", &key, &offset],
            12 => vec![b"PERSIST", &key],
            13 => vec![b"COPY", &key, &other, b"REPLACE"],
            14 => vec![b"RENAME", &key, &other],
            15 => vec![b"OBJECT", b"ENCODING", &key],
            _ => vec![b"DEL", &key],
        };
        words.into_iter().map(<[u8]>::to_vec).collect()
    }

    fn in_a_script(&mut self) {
        let call = self.valid();
        let script = "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))";
        let mut words = vec![b"EVAL".to_vec(), script.into(), b"1".to_vec()];
        words.extend([call[1].clone(), call[0].clone()]);
        words.extend_from_slice(&call[2..]);
        self.send(words);
    }

    fn in_a_transaction(&mut self) {
        self.send(vec![b"MULTI".to_vec()]);
        for _ in 0..self.random.random_range(0..4) {
            let words = self.valid();
            self.send(words);
        }
        self.send(vec![b"EXEC".to_vec()]);
    }

    fn configuration(&mut self) -> Vec<Vec<u8>> {
        let (name, value) = match self.random.random_range(0..6) {
            0 => ("mailrl.per-minute", self.number(1, 40)),
            1 => ("mailrl.recipients-per-day", self.number(1, 5_000)),
            2 => (
                "mailrl.window",
                if self.random.random() {
                    "rolling"
                } else {
                    "calendar"
                }
                .into(),
            ),
            3 => (
                "mailrl.pacing",
                if self.random.random() { "yes" } else { "no" }.into(),
            ),
            4 => ("mailrl.bulk-share", self.number(1, 100)),
            _ => ("mailrl.window", self.noise()),
        };
        vec![b"CONFIG".to_vec(), b"SET".to_vec(), name.into(), value]
    }

    /// What the protocol allows, though no client writes it.
    fn oddly_framed(&mut self) {
        match self.random.random_range(0..4) {
            0 => self.sent.extend_from_slice(b"*0\r\n"),
            1 => self.sent.extend_from_slice(b"*-1\r\n"),
            2 => self.sent.extend_from_slice(b"\r\n"),
            _ => {
                self.sent
                    .extend_from_slice(b"  mailrl.reserve   inline \"1\"  \r\n");
                self.awaited.push(vec![b"MAILRL.RESERVE".to_vec()]);
            }
        }
    }

    fn key(&mut self) -> Vec<u8> {
        self.keys.choose(&mut self.random).expect("some keys").clone()
    }

    fn id(&mut self) -> Vec<u8> {
        self.ids.choose(&mut self.random).expect("one at least").clone()
    }

    fn number(&mut self, least: u32, most: u32) -> Vec<u8> {
        self.random.random_range(least..=most).to_string().into_bytes()
    }

    fn odd_number(&mut self) -> Vec<u8> {
        let odd = [
            "0",
            "-1",
            "1025",
            "3600001",
            "86400001",
            "4294967295",
            "4294967296",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "1e9",
            "0x10",
            "+1",
            " 1",
            "",
            "18446744073709551615-4294967295",
            "0-0",
            "1--1",
            "00000000000000000000000000000000000001",
        ];
        odd.choose(&mut self.random).expect("some").as_bytes().to_vec()
    }

    /// Any bytes, at times very many.
    fn noise(&mut self) -> Vec<u8> {
        let most = *[4, 40, 300, 3_000].choose(&mut self.random).expect("one of four");
        let mut noise = vec![0; self.random.random_range(0..=most)];
        self.random.fill_bytes(&mut noise);
        noise
    }

    /// Remembers the id in a reply to a reservation.
    fn note_id(&mut self, reply: Reply) {
        let Reply::Array(parts) = reply else { return };
        if let Ok([Reply::Integer(1), .., Reply::Bulk(Some(id))]) = <[Reply; 6]>::try_from(parts) {
            if self.ids.len() > 60 {
                let place = self.random.random_range(0..self.ids.len());
                self.ids.swap_remove(place);
            }
            self.ids.push(id);
        }
    }

    /// How far the clock goes between two batches, in ms: mostly on, at times back.
    fn clock_step(&mut self) -> i64 {
        match self.random.random_range(0..20) {
            0 => -self.random.random_range(0..100_000_000),
            1..4 => self.random.random_range(0..100_000_000),
            _ => self.random.random_range(0..30_000),
        }
    }
}
