//! A redis-server of a test's own.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to answer after its start.
const START_DEADLINE: Duration = Duration::from_secs(20);

/// A port on loopback that was free a moment ago.
///
/// # Panics
/// If the machine has no port left.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("a bound address").port()
}

/// What a server is started with.
#[derive(Debug, Clone, Default)]
pub struct RedisServerBuilder {
    arguments: Vec<String>,
    module: Option<Vec<String>>,
    port: Option<u16>,
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

    /// Starts the server, and waits until it answers.
    ///
    /// # Panics
    /// If it does not come up; the message holds its log.
    #[must_use]
    pub fn start(self) -> RedisServer {
        // A free port can be taken by somebody else before the server has it.
        for _ in 0..3 {
            let mut server = RedisServer {
                child: None,
                port: self.port.unwrap_or_else(free_port),
                directory: tempfile::tempdir().expect("a temporary directory"),
                arguments: self.arguments.clone(),
                module: self.module.clone(),
            };
            match server.spawn() {
                Ok(()) => return server,
                Err(log) if log.contains("Address already in use") && self.port.is_none() => {}
                Err(log) => panic!("redis-server did not start:\n{log}"),
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
    directory: TempDir,
    arguments: Vec<String>,
    module: Option<Vec<String>>,
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
        redis::Client::open(self.url())
            .and_then(|client| client.get_connection())
            .expect("a connection to the test's own server")
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
        let mut command =
            Command::new(std::env::var_os("MAILRL_REDIS_SERVER").unwrap_or("redis-server".into()));
        command
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
        let mut child =
            child.map_err(|error| format!("redis-server: {error} (apt-get install redis-server)"))?;
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
