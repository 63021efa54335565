//! A Redis whose primary the sentinels name, each time that a connection is dialled.

use std::sync::atomic::{AtomicUsize, Ordering};

use redis::aio::MultiplexedConnection;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, RedisResult, TlsMode};

/// The sentinels, and what they are asked for.
pub(crate) struct Sentinels {
    addresses: Vec<ConnectionInfo>,
    primary: String,
    node: SentinelNodeConnectionInfo,
    dials: AtomicUsize,
}

impl Sentinels {
    /// `redis` is an address whose host is the primary's name.
    pub(crate) fn new(redis: &ConnectionInfo, addresses: Vec<ConnectionInfo>) -> Self {
        let node =
            SentinelNodeConnectionInfo::default().set_redis_connection_info(redis.redis_settings().clone());
        let (primary, node) = match redis.addr() {
            ConnectionAddr::TcpTls { host, .. } => (host.clone(), node.set_tls_mode(TlsMode::Secure)),
            other => (host_of(other), node),
        };
        Self {
            addresses,
            primary,
            node,
            dials: AtomicUsize::new(0),
        }
    }

    /// Dials the primary. Each time another sentinel is asked first: one that takes connections and
    /// says nothing costs one dial.
    pub(crate) async fn dial(&self, config: &AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
        let mut addresses = self.addresses.clone();
        let dial = self.dials.fetch_add(1, Ordering::Relaxed);
        let count = addresses.len().max(1);
        addresses.rotate_left(dial % count);
        // Made anew each time: it keeps connections that went silent.
        SentinelClient::build(
            addresses,
            &self.primary,
            Some(self.node.clone()),
            SentinelServerType::Master,
        )?
        .get_async_connection_with_config(config)
        .await
    }
}

fn host_of(address: &ConnectionAddr) -> String {
    match address {
        ConnectionAddr::Tcp(host, _) => host.clone(),
        other => other.to_string(),
    }
}
