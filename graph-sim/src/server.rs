//! The simulator as a server within this process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use axum::extract::{Extension, Request, State as From};
use axum::http::HeaderValue;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Router, http::StatusCode};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::connection::{Connection, ResettableStream};
use crate::control;
use crate::fault::{DelayRange, Fault, FaultError};
use crate::mail::StoredMessage;
use crate::report::Report;
use crate::send_mail::send_mail;
use crate::state::{Settings, State};
use crate::throttle::Limits;
use crate::token::token;

/// A running simulator; dropping it closes its port and all connections.
pub struct GraphSim {
    state: State,
    address: SocketAddr,
    server: JoinHandle<()>,
}

/// What a simulator is started with.
#[derive(Debug, Clone)]
pub struct GraphSimBuilder {
    address: SocketAddr,
    settings: Settings,
    latency: DelayRange,
    seed: u64,
}

impl GraphSim {
    /// A simulator with Microsoft's limits, on a free port of 127.0.0.1, that takes any client.
    #[must_use]
    pub fn builder() -> GraphSimBuilder {
        GraphSimBuilder {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            settings: Settings {
                limits: Limits::default(),
                client: None,
                token_lifetime: Duration::from_secs(3599),
                keep_raw: false,
            },
            latency: DelayRange { min_ms: 0, max_ms: 0 },
            seed: 0,
        }
    }

    /// Where it listens, as `http://127.0.0.1:1234`: both the login and the Graph address.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Misbehaves so from now on, after the faults that were there before.
    ///
    /// # Panics
    /// If the fault's values are out of range; [`Fault`] says what they may be.
    pub fn inject(&self, fault: Fault) {
        if let Err(error) = self.try_inject(fault) {
            panic!("no such fault: {error}");
        }
    }

    /// Like [`inject`](Self::inject), for a fault that somebody else made.
    ///
    /// # Errors
    /// If the fault's values are out of range.
    pub fn try_inject(&self, fault: Fault) -> Result<(), FaultError> {
        self.state.add_fault(fault)
    }

    /// Forgets all faults.
    pub fn clear_faults(&self) {
        self.state.clear_faults();
    }

    /// Takes so long for each `sendMail` from now on, in milliseconds.
    ///
    /// # Panics
    /// If the range is empty.
    pub fn set_latency(&self, latency_ms: RangeInclusive<u64>) {
        if let Err(error) = self.state.set_latency(latency_ms.into()) {
            panic!("no such latency: {error}");
        }
    }

    /// Moves the clock of windows and tokens ahead.
    pub fn advance(&self, by: Duration) {
        self.state.advance(by);
    }

    /// Makes all tokens that were issued so far worthless, before their time.
    pub fn revoke_tokens(&self) {
        self.state.revoke_tokens();
    }

    /// All mails that were accepted, in that order.
    #[must_use]
    pub fn messages(&self) -> Vec<StoredMessage> {
        self.state.messages(None)
    }

    /// What was seen so far.
    #[must_use]
    pub fn report(&self) -> Report {
        self.state.report()
    }
}

impl Drop for GraphSim {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl GraphSimBuilder {
    /// Listens here; port 0 is a free one. (127.0.0.1:0)
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// What each mailbox is held to. (Microsoft's limits)
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// The only client that gets a token. (Any)
    #[must_use]
    pub fn client(mut self, id: impl Into<String>, secret: impl Into<String>) -> Self {
        self.settings.client = Some((id.into(), secret.into()));
        self
    }

    /// How long a token is good, told to the client in whole seconds. (3599 s)
    #[must_use]
    pub fn token_lifetime(mut self, lifetime: Duration) -> Self {
        self.settings.token_lifetime = lifetime;
        self
    }

    /// Keeps the MIME of what it accepts. (It does not)
    #[must_use]
    pub fn keep_raw(mut self, keep: bool) -> Self {
        self.settings.keep_raw = keep;
        self
    }

    /// Takes a random time within this range for each `sendMail`, in milliseconds; the mail is
    /// accepted at a random moment within it. (0)
    #[must_use]
    pub fn latency(mut self, latency_ms: RangeInclusive<u64>) -> Self {
        self.latency = latency_ms.into();
        self
    }

    /// Where all that is random starts from. (0)
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts it on the current tokio runtime.
    ///
    /// # Panics
    /// If it cannot listen or its latency is an empty range; see [`try_start`](Self::try_start).
    pub async fn start(self) -> GraphSim {
        match self.try_start().await {
            Ok(sim) => sim,
            Err(error) => panic!("the Graph simulator does not start: {error}"),
        }
    }

    /// Starts it on the current tokio runtime.
    ///
    /// # Errors
    /// If it cannot listen or its latency is an empty range.
    pub async fn try_start(self) -> io::Result<GraphSim> {
        self.latency
            .check()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let listener = TcpListener::bind(self.address).await?;
        let address = listener.local_addr()?;
        let state = State::new(self.settings, self.latency, self.seed);
        let server = tokio::spawn(serve(listener, router(state.clone())));
        Ok(GraphSim {
            state,
            address,
            server,
        })
    }
}

fn router(state: State) -> Router {
    Router::new()
        .route("/{tenant}/oauth2/v2.0/token", post(token))
        .route("/v1.0/users/{mailbox}/sendMail", post(send_mail))
        .layer(middleware::from_fn_with_state(state.clone(), add_request_id))
        .route("/sim/messages", get(control::messages))
        .route("/sim/report", get(control::report))
        .route(
            "/sim/faults",
            post(control::add_fault).delete(control::clear_faults),
        )
        .route("/sim/latency", post(control::set_latency))
        .route("/sim/advance", post(control::advance))
        .fallback(async || StatusCode::NOT_FOUND)
        .with_state(state)
}

/// Graph names each request in its answer.
async fn add_request_id(From(state): From<State>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::from_str(&state.request_id()) {
        response.headers_mut().insert("request-id", id);
    }
    response
}

/// Its own accept loop, and not axum's: a connection must be at hand to be reset, and dropping
/// the simulator must end those that hang.
async fn serve(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve_connection(stream, router.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, router: Router) {
    let connection = Connection::default();
    let _ = stream.set_nodelay(true);
    let stream = ResettableStream::new(stream, connection.clone());
    let service = TowerToHyperService::new(router.layer(Extension(connection)));
    // An error is a client that went away, or a reset that was asked for.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
