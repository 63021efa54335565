//! A Redis cluster of a test's own: primaries with one replica each, all on loopback.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::{Calls, RedisServer};

const DEADLINE: Duration = Duration::from_secs(30);

/// How many slots a cluster has.
const SLOTS: usize = 16_384;

/// The nodes talk to each other on a port so much higher.
const BUS: u16 = 10_000;

/// A cluster with the module in each node; the first half of its nodes begin as primaries, the node
/// `primaries + n` as the replica of the node `n`.
#[derive(Debug)]
pub struct RedisCluster {
    /// The nodes, in the order in which they were started.
    pub nodes: Vec<RedisServer>,
    primaries: usize,
}

impl RedisCluster {
    /// Starts so many primaries and as many replicas, and waits until all of them agree.
    ///
    /// A node counts as gone after `node_timeout_ms`; a replica then takes its place.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn start(primaries: usize, node_timeout_ms: u64) -> Self {
        let nodes = (0..2 * primaries).map(|_| node(node_timeout_ms)).collect();
        let cluster = Self { nodes, primaries };
        cluster.share_out_slots();
        cluster.meet();
        cluster.wait_until("the cluster is up", |node| {
            let info: String = node.connection().ask("CLUSTER INFO");
            info.contains("cluster_state:ok")
                && info.contains(&format!("cluster_known_nodes:{}\r", 2 * primaries))
        });
        cluster.attach_replicas();
        cluster
    }

    /// The addresses of all nodes.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The node that has a slot, as the first running node other than `but_for` sees it.
    ///
    /// # Panics
    /// If nobody has it.
    #[must_use]
    pub fn owner(&self, slot: u64, but_for: Option<usize>) -> usize {
        let asked = usize::from(but_for == Some(0));
        let ranges: Vec<(u64, u64, (String, u16))> = self.nodes[asked]
            .connection()
            .ask::<Vec<Vec<redis::Value>>>("CLUSTER SLOTS")
            .into_iter()
            .map(|mut range| {
                range.truncate(3);
                let primary = range.pop().unwrap_or(redis::Value::Nil);
                let mut primary: Vec<redis::Value> =
                    redis::from_redis_value(primary).expect("a node of CLUSTER SLOTS");
                primary.truncate(2);
                let numbers: Vec<u64> = range
                    .into_iter()
                    .map(|number| redis::from_redis_value(number).expect("a slot"))
                    .collect();
                let primary = redis::from_redis_value(redis::Value::Array(primary));
                (numbers[0], numbers[1], primary.expect("host and port"))
            })
            .collect();
        let (.., (_, port)) = ranges
            .into_iter()
            .find(|(first, last, _)| (*first..=*last).contains(&slot))
            .expect("a node has the slot");
        let node = self.nodes.iter().position(|node| node.port() == port);
        node.expect("a node of this cluster")
    }

    /// The id by which the nodes know one of them.
    #[must_use]
    pub fn id(&self, node: usize) -> String {
        self.nodes[node].connection().ask("CLUSTER MYID")
    }

    /// Moves a slot with all its keys from its node to another, while both are in use.
    ///
    /// # Panics
    /// If a node refuses.
    pub fn migrate(&self, slot: u64, to: usize) {
        let from = self.owner(slot, None);
        let (from_id, to_id) = (self.id(from), self.id(to));
        let (mut source, mut target) = (self.nodes[from].connection(), self.nodes[to].connection());
        target.ask::<()>(&format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"));
        source.ask::<()>(&format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"));
        let port = self.nodes[to].port();
        loop {
            let keys: Vec<Vec<u8>> = source.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 10"));
            if keys.is_empty() {
                break;
            }
            let mut migrate = redis::cmd("MIGRATE");
            migrate
                .arg("127.0.0.1")
                .arg(port)
                .arg("")
                .arg(0)
                .arg(5_000)
                .arg("KEYS")
                .arg(keys);
            migrate.exec(&mut source).expect("MIGRATE");
        }
        // The new owner first, so that it is never nobody's.
        for node in [to, from].into_iter().chain(0..self.primaries) {
            let mut connection = self.nodes[node].connection();
            connection.ask::<()>(&format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
        }
    }

    fn meet(&self) {
        for node in &self.nodes[1..] {
            let port = node.port();
            let mut first = self.nodes[0].connection();
            first.ask::<()>(&format!("CLUSTER MEET 127.0.0.1 {port} {}", port + BUS));
        }
    }

    fn share_out_slots(&self) {
        for (number, node) in self.nodes[..self.primaries].iter().enumerate() {
            let first = number * SLOTS / self.primaries;
            let last = (number + 1) * SLOTS / self.primaries - 1;
            let epoch = number + 1;
            node.connection()
                .ask::<()>(&format!("CLUSTER SET-CONFIG-EPOCH {epoch}"));
            node.connection()
                .ask::<()>(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
    }

    fn attach_replicas(&self) {
        for number in 0..self.primaries {
            let primary = self.id(number);
            let replica = &self.nodes[self.primaries + number];
            replica
                .connection()
                .ask::<()>(&format!("CLUSTER REPLICATE {primary}"));
        }
        for number in 0..self.primaries {
            self.nodes[number].wait_for_replica(&self.nodes[self.primaries + number]);
        }
        let replicas = self.primaries;
        self.wait_until("all know of all replicas", |node| {
            let nodes: String = node.connection().ask("CLUSTER NODES");
            nodes.lines().filter(|line| line.contains("slave")).count() == replicas
        });
    }

    fn wait_until(&self, what: &str, holds: impl Fn(&RedisServer) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        for node in &self.nodes {
            while !holds(node) {
                assert!(Instant::now() < deadline, "never: {what}\n{}", node.log());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

fn node(node_timeout_ms: u64) -> RedisServer {
    RedisServer::builder()
        .port(port_with_bus())
        .arguments(["--cluster-enabled", "yes"])
        .arguments(["--cluster-node-timeout", &node_timeout_ms.to_string()])
        .arguments(["--cluster-require-full-coverage", "no"])
        .arguments(["--repl-diskless-sync-delay", "0"])
        .module(["window", "rolling"])
        .start()
}

/// A free port whose bus port is free too.
fn port_with_bus() -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (0..1_000)
        .map(|_| crate::free_port())
        .map(|port| 10_000 + port % 22_000)
        .find(|port| is_free(*port) && is_free(port + BUS))
        .expect("two free ports")
}
