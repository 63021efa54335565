//! A redis-server of a test's own.

use std::ffi::OsString;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::clock::{Clock, NOON_MS};

/// How long a server may take to answer after its start.
const START_DEADLINE: Duration = Duration::from_secs(20);

/// How long a reply may take: a test that waits in vain fails, and does not hang.
const REPLY_DEADLINE: Duration = Duration::from_mins(1);

const CONFIGURATION: &str = "redis.conf";

/// A port on loopback that was free a moment ago.
///
/// # Panics
/// If the machine has no port left.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("a bound address").port()
}

/// The program that `MAILRL_REDIS_SERVER` names (a path, or a name to look for), else the machine's
/// `redis-server`. One that takes more than a path to start stands behind a script.
fn program() -> OsString {
    std::env::var_os("MAILRL_REDIS_SERVER").unwrap_or("redis-server".into())
}

/// What a server is started with.
#[derive(Debug, Clone, Default)]
pub struct RedisServerBuilder {
    arguments: Vec<String>,
    module: Option<Vec<String>>,
    port: Option<u16>,
    configuration: Option<String>,
    clock: bool,
    time_zone: Option<String>,
}

impl RedisServerBuilder {
    /// One more line of configuration, as `["--appendonly", "yes"]`.
    #[must_use]
    pub fn arguments<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.arguments.extend(arguments.map(String::from));
        self
    }

    /// Loads the module with these arguments, as `["window", "rolling"]`.
    #[must_use]
    pub fn module<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.module = Some(arguments.map(String::from).to_vec());
        self
    }

    /// Listens on this port and not on any free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts it with a `redis.conf` of this text, which `CONFIG REWRITE` can then write.
    #[must_use]
    pub fn configuration(mut self, text: &str) -> Self {
        self.configuration = Some(text.to_owned());
        self
    }

    /// Gives it a clock of its own: see [`RedisServer::move_clock_ms`].
    #[must_use]
    pub fn with_clock(mut self) -> Self {
        self.clock = true;
        self
    }

    /// Has it live in this time zone (a value of `TZ`) and not in the machine's.
    #[must_use]
    pub fn time_zone(mut self, zone: &str) -> Self {
        self.time_zone = Some(zone.to_owned());
        self
    }

    /// Starts the server, and waits until it answers.
    ///
    /// # Panics
    /// If it does not come up; the message holds its log.
    #[must_use]
    pub fn start(self) -> RedisServer {
        match self.try_start() {
            Ok(server) => server,
            Err(log) => panic!("redis-server did not start:\n{log}"),
        }
    }

    /// Starts the server, and waits until it answers.
    ///
    /// # Errors
    /// Its log, if it does not come up.
    ///
    /// # Panics
    /// If no port stays free for it.
    pub fn try_start(self) -> Result<RedisServer, String> {
        // A free port can be taken by somebody else before the server has it.
        for _ in 0..3 {
            let directory = tempfile::tempdir().expect("a temporary directory");
            if let Some(text) = &self.configuration {
                std::fs::write(directory.path().join(CONFIGURATION), text).expect("room for a file");
            }
            let mut server = RedisServer {
                child: None,
                port: self.port.unwrap_or_else(free_port),
                clock: self.clock.then(|| Clock::make(directory.path())),
                directory,
                arguments: self.arguments.clone(),
                module: self.module.clone(),
                time_zone: self.time_zone.clone(),
            };
            match server.spawn() {
                Ok(()) => return Ok(server),
                Err(log) if log.contains("Address already in use") && self.port.is_none() => {}
                Err(log) => return Err(log),
            }
        }
        panic!("no port stayed free for redis-server");
    }
}

/// A running (or, after [`RedisServer::kill`], a stopped) redis-server.
#[derive(Debug)]
pub struct RedisServer {
    child: Option<Child>,
    port: u16,
    clock: Option<Clock>,
    directory: TempDir,
    arguments: Vec<String>,
    module: Option<Vec<String>>,
    time_zone: Option<String>,
}

impl RedisServer {
    /// A server with nothing set: no persistence, no module.
    #[must_use]
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    /// A server with the module in it, under these module arguments.
    #[must_use]
    pub fn with_module<const N: usize>(arguments: [&str; N]) -> Self {
        Self::builder().module(arguments).start()
    }

    /// A server with the module in it, whose clock stands still at [`NOON_MS`].
    #[must_use]
    pub fn at_noon<const N: usize>(arguments: [&str; N]) -> Self {
        let server = Self::builder().module(arguments).with_clock().start();
        server.stop_clock_at_ms(NOON_MS);
        server
    }

    /// Its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, as `redis://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where it keeps its files, and its log as `redis.log`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Its process id.
    ///
    /// # Panics
    /// If it is not running.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a running server").id()
    }

    /// A new connection.
    ///
    /// # Panics
    /// If the server does not take it.
    #[must_use]
    pub fn connection(&self) -> redis::Connection {
        self.connection_by("")
    }

    /// A new connection in RESP3, where a map is a map.
    ///
    /// # Panics
    /// If the server does not take it.
    #[must_use]
    pub fn connection_in_resp3(&self) -> redis::Connection {
        self.connection_by("/?protocol=resp3")
    }

    fn connection_by(&self, parameters: &str) -> redis::Connection {
        let connection = redis::Client::open(format!("{}{parameters}", self.url()))
            .and_then(|client| client.get_connection())
            .expect("a connection to the test's own server");
        connection
            .set_read_timeout(Some(REPLY_DEADLINE))
            .expect("a timeout that is not zero");
        connection
    }

    /// Moves its clock, forth or back; whether it runs or stands still, it goes on to do so.
    ///
    /// # Panics
    /// If it was not started with [`RedisServerBuilder::with_clock`].
    pub fn move_clock_ms(&self, delta: i64) {
        self.clock().advance_ms(delta);
    }

    /// Has its clock stand still at this time, in ms since 1970.
    ///
    /// # Panics
    /// If it was not started with [`RedisServerBuilder::with_clock`].
    pub fn stop_clock_at_ms(&self, at: u64) {
        self.clock().stop_at_ms(at);
    }

    fn clock(&self) -> &Clock {
        self.clock.as_ref().expect("a server with a clock of its own")
    }

    /// Stops its process in mid-air (SIGSTOP): the port stays open and nothing answers.
    pub fn freeze(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// Lets a frozen server go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Kills it (SIGKILL), as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it in good order, with what it saves when told to (`SHUTDOWN SAVE` if `save`).
    pub fn shut_down(&mut self, save: bool) {
        if let Some(mut child) = self.child.take() {
            let mode = if save { "SAVE" } else { "NOSAVE" };
            let _ = redis::cmd("SHUTDOWN")
                .arg(mode)
                .query::<()>(&mut self.connection());
            let _ = child.wait();
        }
    }

    /// Starts a stopped server again, on the same port and files.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn restart(&mut self) {
        self.kill();
        if let Err(log) = self.spawn() {
            panic!("redis-server did not start again:\n{log}");
        }
    }

    /// Starts a stopped server again without the module.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn restart_without_module(&mut self) {
        self.module = None;
        self.restart();
    }

    /// Starts a stopped server again with the module under these module arguments.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn restart_with_module<const N: usize>(&mut self, arguments: [&str; N]) {
        self.module = Some(arguments.map(String::from).to_vec());
        self.restart();
    }

    fn signal(&self, signal: libc::c_int) {
        let pid = i32::try_from(self.pid()).expect("a process id");
        // SAFETY: kill(2) takes no pointers, and the process is a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "signal {signal} to {pid}");
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("redis.log")
    }

    /// Starts the process and waits until it takes connections; an error is the server's log.
    fn spawn(&mut self) -> Result<(), String> {
        let mut command = Command::new(program());
        if self.directory().join(CONFIGURATION).exists() {
            command.arg(self.directory().join(CONFIGURATION));
        }
        if let Some(clock) = &self.clock {
            clock.show_to(&mut command);
        }
        command
            .envs(self.time_zone.iter().map(|zone| ("TZ", zone)))
            .args([
                "--port",
                &self.port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--logfile",
            ])
            .arg(self.log_path())
            .arg("--dir")
            .arg(self.directory.path())
            .args(["--enable-debug-command", "yes"])
            .args(&self.arguments);
        if let Some(arguments) = &self.module {
            command
                .arg("--loadmodule")
                .arg(crate::module_path())
                .args(arguments);
        }
        let _ = std::fs::remove_file(self.log_path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| {
            let program = program();
            format!("{}: {error} (apt-get install redis-server)", program.display())
        })?;
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            let ended = child.try_wait().is_ok_and(|status| status.is_some());
            if ended || Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                return Err(self.log());
            }
            if self.log().contains("Ready to accept connections")
                && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            {
                self.child = Some(child);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
