//! A Redis cluster: which node has a mailbox, and a connection of ours to each.
//!
//! redis-rs's own `ClusterConnection` asks a node that hung up once more (a mail could be counted
//! twice), dials a node that is gone five times in the first second, and does not leave one that has
//! gone silent for as long as the others answer. Here each node has a [`Link`], with all that it
//! promises; what is left is to know which node to ask.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, select_ok};
use redis::{Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind};
use redis::{Value, cmd};
use tokio::time::timeout;

use crate::Mailbox;
use crate::connection::{Link, ends_the_line, lock};
use crate::slots::{Address, Range, SLOTS, read_address, read_slots, slot};
use crate::tls::open_redis;

/// How often a question follows a slot that is on its way from node to node.
const HOPS: usize = 4;

/// How often the nodes are asked at most who has what.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long they may take to say so.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// The cluster as far as it is known.
pub(crate) struct Cluster(Arc<Nodes>);

struct Nodes {
    /// How each node is reached, but for its address.
    manner: ConnectionInfo,
    state: Mutex<State>,
}

struct State {
    /// Those that were configured, and those that have slots.
    known: Vec<Arc<Node>>,
    /// The node of each slot; none if nobody has it.
    owners: Vec<Option<Arc<Node>>>,
    look: Option<Look>,
}

/// The question who has what, asked or answered.
struct Look {
    since: Instant,
    answer: Shared<BoxFuture<'static, RedisResult<()>>>,
}

struct Node {
    address: Address,
    is_configured: bool,
    link: Link,
}

/// Where else an answer is to be had.
enum Redirect {
    /// The slot has moved there.
    Moved(Address),
    /// The slot is moving there, and this mailbox has arrived.
    Ask(Address),
}

impl Cluster {
    /// Of these nodes at least one has to be reachable whenever the others are looked for. There has to
    /// be one; user, password and TLS of the first hold for all.
    pub(crate) fn new(first: ConnectionInfo, others: Vec<ConnectionInfo>) -> RedisResult<Self> {
        let manner = first.clone();
        let nodes = std::iter::once(first).chain(others);
        let known = nodes
            .map(|info| {
                Ok(Arc::new(Node {
                    address: address(info.addr())?,
                    is_configured: true,
                    link: Link::to_server(open_redis(info)?),
                }))
            })
            .collect::<RedisResult<_>>()?;
        let state = State {
            known,
            owners: vec![None; usize::from(SLOTS)],
            look: None,
        };
        Ok(Self(Arc::new(Nodes {
            manner,
            state: Mutex::new(state),
        })))
    }

    /// Asks the node that has the mailbox, wherever that is by now.
    pub(crate) async fn query(&self, mailbox: &Mailbox, command: &Cmd) -> RedisResult<Value> {
        let slot = slot(mailbox.key());
        let mut node = self.owner(slot).await?;
        let mut is_arriving = false;
        for _ in 0..HOPS {
            let failure = match node.link.ask(command, is_arriving).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            match redirect(&failure.error, &node) {
                Some(Redirect::Moved(address)) => {
                    node = self.0.moved(slot, &address)?;
                    is_arriving = false;
                    self.look_soon();
                }
                Some(Redirect::Ask(address)) => {
                    node = self.0.node(&address)?;
                    is_arriving = true;
                }
                None if !is_the_nodes_fault(&failure.error) => return Err(failure.error),
                None if !failure.is_unheard => {
                    self.look_soon();
                    return Err(failure.error);
                }
                None => {
                    // The question is still to be asked: perhaps the node has a successor.
                    let _ = self.look().await;
                    match self.0.owner(slot) {
                        Some(owner) if !Arc::ptr_eq(&owner, &node) => node = owner,
                        _ => return Err(failure.error),
                    }
                    is_arriving = false;
                }
            }
        }
        Err(RedisError::from((
            ErrorKind::Server(ServerErrorKind::TryAgain),
            "the mailbox's slot moved faster than it could be followed",
        )))
    }

    /// Told when a question went unanswered: gives the node's connection up if nothing arrives on it
    /// any more, and looks for its successor.
    pub(crate) fn unanswered(&self, mailbox: &Mailbox) {
        if let Some(node) = self.0.owner(slot(mailbox.key())) {
            node.link.unanswered();
        }
        self.look_soon();
    }

    async fn owner(&self, slot: u16) -> RedisResult<Arc<Node>> {
        if let Some(node) = self.0.owner(slot) {
            return Ok(node);
        }
        self.look().await?;
        self.0.owner(slot).ok_or_else(|| {
            RedisError::from((
                ErrorKind::Server(ServerErrorKind::ClusterDown),
                "no node of the cluster has the mailbox's slot",
            ))
        })
    }

    fn look_soon(&self) {
        drop(self.look());
    }

    /// Finds out who has what, in a task of its own; not more often than twice a second.
    fn look(&self) -> Shared<BoxFuture<'static, RedisResult<()>>> {
        let mut state = lock(&self.0.state);
        let now = Instant::now();
        if let Some(look) = &state.look
            && now.saturating_duration_since(look.since) < LOOK_EVERY
        {
            return look.answer.clone();
        }
        let answer = look(Arc::clone(&self.0)).boxed().shared();
        state.look = Some(Look {
            since: now,
            answer: answer.clone(),
        });
        tokio::spawn(answer.clone().map(drop));
        answer
    }
}

/// Asks all nodes at once: the first answer will do, and one that is gone keeps nobody waiting.
async fn look(nodes: Arc<Nodes>) -> RedisResult<()> {
    let known = lock(&nodes.state).known.clone();
    let asked = known.into_iter().map(|node| slots_by(node).boxed());
    let (ranges, _) = select_ok(asked).await?;
    nodes.learn(&ranges)
}

async fn slots_by(node: Arc<Node>) -> RedisResult<Vec<Range>> {
    let mut command = cmd("CLUSTER");
    command.arg("SLOTS");
    let Ok(answer) = timeout(LOOK_TIMEOUT, node.link.ask(&command, false)).await else {
        node.link.unanswered();
        return Err(RedisError::from((ErrorKind::Io, "the node did not answer")));
    };
    read_slots(answer.map_err(|failure| failure.error)?, &node.address.0)
}

impl Nodes {
    fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        lock(&self.state).owners[usize::from(slot)].clone()
    }

    /// The node at this address, known or new.
    fn node(&self, address: &Address) -> RedisResult<Arc<Node>> {
        let mut state = lock(&self.state);
        if let Some(node) = state.known.iter().find(|node| node.address == *address) {
            return Ok(Arc::clone(node));
        }
        let info = self.manner.clone().set_addr(at(self.manner.addr(), address));
        let node = Arc::new(Node {
            address: address.clone(),
            is_configured: false,
            link: Link::to_server(open_redis(info)?),
        });
        state.known.push(Arc::clone(&node));
        Ok(node)
    }

    fn moved(&self, slot: u16, to: &Address) -> RedisResult<Arc<Node>> {
        let node = self.node(to)?;
        lock(&self.state).owners[usize::from(slot)] = Some(Arc::clone(&node));
        Ok(node)
    }

    fn learn(&self, ranges: &[Range]) -> RedisResult<()> {
        let mut owners = vec![None; usize::from(SLOTS)];
        for range in ranges {
            let node = self.node(&range.primary)?;
            for slot in range.first..=range.last {
                owners[usize::from(slot)] = Some(Arc::clone(&node));
            }
        }
        let mut state = lock(&self.state);
        state.owners = owners;
        // The connections of those that left go with them.
        state
            .known
            .retain(|node| node.is_configured || ranges.iter().any(|range| range.primary == node.address));
        Ok(())
    }
}

fn redirect(error: &RedisError, said_by: &Node) -> Option<Redirect> {
    let (address, _) = error.redirect_node()?;
    let address = read_address(address, &said_by.address.0)?;
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::Ask) => Some(Redirect::Ask(address)),
        _ => Some(Redirect::Moved(address)),
    }
}

/// True if another node may have taken this one's place.
fn is_the_nodes_fault(error: &RedisError) -> bool {
    ends_the_line(error)
        || matches!(
            error.kind(),
            ErrorKind::Server(
                ServerErrorKind::ClusterDown | ServerErrorKind::MasterDown | ServerErrorKind::BusyLoading
            )
        )
}

fn address(address: &ConnectionAddr) -> RedisResult<Address> {
    match address {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Ok((host.clone(), *port))
        }
        _ => Err(RedisError::from((
            ErrorKind::InvalidClientConfig,
            "a cluster's nodes are reached by host and port",
        ))),
    }
}

/// The other address, reached as this one is.
fn at(like: &ConnectionAddr, (host, port): &Address) -> ConnectionAddr {
    match like {
        ConnectionAddr::TcpTls {
            insecure, tls_params, ..
        } => ConnectionAddr::TcpTls {
            host: host.clone(),
            port: *port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host.clone(), *port),
    }
}
