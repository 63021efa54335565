//! Random calls.

use std::io::Write;

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::{IndexedMutRandom, IndexedRandom, SliceRandom};
use rand::{Rng, RngExt, SeedableRng};

use super::reply::Reply;

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

/// Makes calls.
pub struct Sender {
    pub random: Xoshiro256PlusPlus,
    keys: Vec<Vec<u8>>,
    /// Reservations that were made lately: the key and the id.
    made: Vec<(Vec<u8>, Vec<u8>)>,
    pub sent: Vec<u8>,
    /// The calls whose replies are still to be read.
    pub awaited: Vec<Vec<Vec<u8>>>,
}

impl Sender {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            keys: keys(),
            made: Vec::new(),
            sent: Vec::new(),
            awaited: Vec::new(),
        }
    }

    /// Some calls that belong together.
    pub fn something(&mut self) {
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
        let mut key = self.key();
        let (name, arguments) = match self.random.random_range(0..20) {
            0..9 => {
                let mut arguments = vec![self.number(1, 30)];
                self.options(
                    &mut arguments,
                    &["PERMINUTE", "PERDAY", "CONCURRENT", "LEASE", "BULK"],
                );
                ("MAILRL.RESERVE", arguments)
            }
            9..15 => {
                let made = self.made.choose(&mut self.random).cloned();
                let (its_key, id) = made.unwrap_or_else(|| (key.clone(), b"1813060800000-0".to_vec()));
                // At times of another mailbox.
                if self.random.random_bool(0.8) {
                    key = its_key;
                }
                let name = if self.random.random() {
                    "MAILRL.RELEASE"
                } else {
                    "MAILRL.COMMIT"
                };
                (name, vec![id])
            }
            15 => ("MAILRL.PAUSE", vec![self.number(0, 20_000)]),
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
            match *name {
                "BULK" => {}
                "LEASE" => arguments.push(self.number(1, 200_000)),
                _ => arguments.push(self.number(1, 1_000)),
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

    /// A command of the server's own.
    fn other_command(&mut self) -> Vec<Vec<u8>> {
        let (key, other) = (self.key(), self.key());
        let offset = self.number(0, 3_000);
        let words: Vec<&[u8]> = match self.random.random_range(0..14) {
            0..6 => return self.writing_command(key),
            6 => vec![b"PEXPIRE", &key, &offset],
            7 => vec![b"PERSIST", &key],
            8 => vec![b"COPY", &key, &other, b"REPLACE"],
            9 => vec![b"SETBIT", &key, &offset, b"1"],
            10 => vec![b"INCR", &key],
            11 => vec![b"OBJECT", b"ENCODING", &key],
            _ => vec![b"DEL", &key],
        };
        words.into_iter().map(<[u8]>::to_vec).collect()
    }

    /// A command of the server's own that leaves something else under the key.
    fn writing_command(&mut self, key: Vec<u8>) -> Vec<Vec<u8>> {
        let commands: [(&str, &[&str]); 10] = [
            ("SET", &[]),
            ("SETRANGE", &["700"]),
            ("SETRANGE", &["180"]),
            ("APPEND", &[]),
            ("LPUSH", &[]),
            ("SADD", &[]),
            ("HSET", &["field"]),
            ("ZADD", &["1"]),
            ("XADD", &["*", "field"]),
            ("PFADD", &[]),
        ];
        let (name, arguments) = *commands.choose(&mut self.random).expect("one of ten");
        let mut words = vec![name.into(), key];
        words.extend(arguments.iter().map(|word| word.as_bytes().to_vec()));
        words.push(self.noise());
        words
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
                self.awaited
                    .push(vec![b"MAILRL.RESERVE".to_vec(), b"inline".to_vec()]);
            }
        }
    }

    fn key(&mut self) -> Vec<u8> {
        self.keys.choose(&mut self.random).expect("some keys").clone()
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
        let most = *[4, 4, 40, 40, 40, 300, 300, 3_000]
            .choose(&mut self.random)
            .expect("one of eight");
        let mut noise = vec![0; self.random.random_range(0..=most)];
        self.random.fill_bytes(&mut noise);
        noise
    }

    /// Remembers the reservation that a call made, if it did.
    pub fn note(&mut self, words: &[Vec<u8>], reply: Reply) {
        let (Some(key), Reply::Array(parts)) = (words.get(1), reply) else {
            return;
        };
        if let Ok([Reply::Integer(1), .., Reply::Bulk(Some(id))]) = <[Reply; 6]>::try_from(parts) {
            if self.made.len() > 60 {
                let place = self.random.random_range(0..self.made.len());
                self.made.swap_remove(place);
            }
            self.made.push((key.clone(), id));
        }
    }

    /// How far the clock goes between two batches, in ms: mostly on, at times back.
    pub fn clock_step(&mut self) -> i64 {
        match self.random.random_range(0..20) {
            0 => -self.random.random_range(0..100_000_000),
            1..4 => self.random.random_range(0..100_000_000),
            _ => self.random.random_range(0..5_000),
        }
    }
}
