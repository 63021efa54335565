//! How the limiter reaches Redis and how long it may take.

use std::fmt;
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError};

use crate::cluster::Cluster;
use crate::connection::Link;
use crate::sentinel::Sentinels;
use crate::servers::Servers;
use crate::tls::{open_redis, provide_cryptography};

/// The most concurrent sends that Redis counts for a mailbox.
const MAX_CONCURRENT: u32 = 1024;
const MAX_LEASE: Duration = Duration::from_hours(1);
const MAX_DEADLINE: Duration = Duration::from_secs(10);

/// How the limiter reaches Redis and how long it may take.
///
/// ```
/// use std::time::Duration;
/// use mailrl_client::{MailRateLimiter, RateLimiterConfig};
///
/// let config = RateLimiterConfig::new("redis://127.0.0.1:6379").deadline(Duration::from_millis(50));
/// let limiter = MailRateLimiter::new(config)?;
/// # Ok::<_, mailrl_client::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct RateLimiterConfig {
    place: Place,
    deadline: Duration,
    concurrent: Option<u32>,
    lease: Duration,
}

/// Where Redis is.
#[derive(Clone)]
enum Place {
    Server(String),
    Sentinels { redis: String, sentinels: Vec<String> },
    Cluster(Vec<String>),
}

impl RateLimiterConfig {
    /// Reaches Redis at this address, as `redis://[user:password@]host:port[/database]`, or
    /// `rediss://` over TLS, with the certificates that the system trusts.
    #[must_use]
    pub fn new(redis_url: impl Into<String>) -> Self {
        Self::at(Place::Server(redis_url.into()))
    }

    /// Reaches the primary that the sentinels name. The host in the first address is the primary's
    /// name; user, password, database and `rediss://` are those of Redis itself. Those of the
    /// sentinels stand in theirs.
    ///
    /// ```
    /// # use mailrl_client::RateLimiterConfig;
    /// let config = RateLimiterConfig::sentinel(
    ///     "redis://mailrl:password@mymaster",
    ///     ["redis://sentinel-1:26379", "redis://sentinel-2:26379", "redis://sentinel-3:26379"],
    /// );
    /// ```
    #[must_use]
    pub fn sentinel<T: Into<String>>(
        redis_url: impl Into<String>,
        sentinels: impl IntoIterator<Item = T>,
    ) -> Self {
        Self::at(Place::Sentinels {
            redis: redis_url.into(),
            sentinels: sentinels.into_iter().map(Into::into).collect(),
        })
    }

    /// Reaches a Redis cluster through any of these nodes; the others are found by asking. User,
    /// password and TLS of the first hold for all that are found.
    ///
    /// ```
    /// # use mailrl_client::RateLimiterConfig;
    /// let config = RateLimiterConfig::cluster(["redis://node-1:6379", "redis://node-2:6379"]);
    /// ```
    #[must_use]
    pub fn cluster<T: Into<String>>(nodes: impl IntoIterator<Item = T>) -> Self {
        Self::at(Place::Cluster(nodes.into_iter().map(Into::into).collect()))
    }

    fn at(place: Place) -> Self {
        Self {
            place,
            deadline: Duration::from_millis(100),
            concurrent: Some(3),
            lease: Duration::from_mins(2),
        }
    }

    /// The longest that a question to Redis holds a mail up, whatever Redis does: 1 ms to 10 s,
    /// 100 ms by default.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How many sends of one mailbox may be under way at once, over all processes: 1 to 1,024, 3 by
    /// default, `None` for as many as there are.
    ///
    /// Exchange Online takes 4 requests at once from one app for one mailbox, and senders with
    /// exactly 4 still see it refuse some.
    #[must_use]
    pub fn concurrent(mut self, concurrent: Option<u32>) -> Self {
        self.concurrent = concurrent;
        self
    }

    /// After how long a reservation that nobody settled ends by itself: 1 ms to 1 h, 120 s by
    /// default. Its budget stays used and its place among the concurrent sends comes free.
    ///
    /// It must be a little longer than the mailer's own send may take, else a slow send is counted
    /// as over while it still holds one of the provider's connections.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    pub(crate) fn validate(self) -> Result<Settings, ConfigError> {
        let servers = self.place.servers()?;
        if !(Duration::from_millis(1)..=MAX_DEADLINE).contains(&self.deadline) {
            return Err(ConfigError::Deadline { given: self.deadline });
        }
        if let Some(given) = self.concurrent
            && !(1..=MAX_CONCURRENT).contains(&given)
        {
            return Err(ConfigError::Concurrent { given });
        }
        if !(Duration::from_millis(1)..=MAX_LEASE).contains(&self.lease) {
            return Err(ConfigError::Lease { given: self.lease });
        }
        Ok(Settings {
            servers,
            deadline: self.deadline,
            concurrent: self.concurrent,
            lease: self.lease,
        })
    }
}

impl Place {
    fn servers(self) -> Result<Servers, ConfigError> {
        match self {
            Self::Server(url) => {
                let client = open_redis(info(url)?).map_err(unusable)?;
                Ok(Servers::One(Link::to_server(client)))
            }
            Self::Sentinels { redis, sentinels } => {
                let redis = info(redis)?;
                let sentinels = infos(sentinels)?;
                if sentinels.is_empty() {
                    return Err(ConfigError::NoAddress);
                }
                Ok(Servers::One(Link::by_sentinels(Sentinels::new(
                    &redis, sentinels,
                ))))
            }
            Self::Cluster(nodes) => {
                let mut nodes = infos(nodes)?.into_iter();
                let first = nodes.next().ok_or(ConfigError::NoAddress)?;
                let cluster = Cluster::new(first, nodes.collect()).map_err(unusable)?;
                Ok(Servers::Cluster(cluster))
            }
        }
    }
}

fn infos(urls: Vec<String>) -> Result<Vec<ConnectionInfo>, ConfigError> {
    urls.into_iter().map(info).collect()
}

fn info(url: String) -> Result<ConnectionInfo, ConfigError> {
    let info = url.into_connection_info().map_err(unusable)?;
    // Sentinels are dialled without a client of ours.
    if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        provide_cryptography();
    }
    Ok(info)
}

#[allow(clippy::needless_pass_by_value)] // It is what `map_err` passes.
fn unusable(error: RedisError) -> ConfigError {
    ConfigError::RedisUrl {
        reason: error.to_string(),
    }
}

impl fmt::Debug for RateLimiterConfig {
    /// Leaves the address out, since it may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RateLimiterConfig")
            .field("deadline", &self.deadline)
            .field("concurrent", &self.concurrent)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

/// A configuration that has been checked.
pub(crate) struct Settings {
    pub(crate) servers: Servers,
    pub(crate) deadline: Duration,
    pub(crate) concurrent: Option<u32>,
    pub(crate) lease: Duration,
}

/// Why a configuration cannot work, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The address of Redis cannot be read.
    #[error(
        "the address of Redis cannot be used ({reason}): write it as redis://host:port \
         (rediss:// over TLS), or redis://user:password@host:port/database with the password percent-encoded"
    )]
    RedisUrl {
        /// What is wrong with it; never the address itself, which may hold a password.
        reason: String,
    },
    /// There is not a single node of the cluster, or not a single sentinel.
    #[error("no address is given: name at least one node of the cluster, or one sentinel")]
    NoAddress,
    /// The deadline is outside 1 ms to 10 s.
    #[error("a deadline of {given:?} is not possible: set one between 1 ms and 10 s (100 ms is usual)")]
    Deadline {
        /// What was asked for.
        given: Duration,
    },
    /// The number of concurrent sends is outside 1 to 1,024.
    #[error("{given} concurrent sends are not possible: set 1 to 1024, or none to leave them uncounted")]
    Concurrent {
        /// What was asked for.
        given: u32,
    },
    /// The lease is outside 1 ms to 1 h.
    #[error(
        "a lease of {given:?} is not possible: set one between 1 ms and 1 h, a little longer than a send may take"
    )]
    Lease {
        /// What was asked for.
        given: Duration,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(config: RateLimiterConfig) -> ConfigError {
        config.validate().err().expect("a refusal")
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let settings = RateLimiterConfig::new("redis://localhost")
            .validate()
            .ok()
            .unwrap();
        assert_eq!(settings.deadline, Duration::from_millis(100));
        assert_eq!(settings.concurrent, Some(3));
        assert_eq!(settings.lease, Duration::from_mins(2));
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_its_password() {
        for url in [
            "",
            "localhost",
            "http://user:s3cret@host",
            "redis://user:s3cret@host:port",
        ] {
            let message = error(RateLimiterConfig::new(url)).to_string();
            assert!(message.contains("write it as redis://host:port"), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn sentinels_and_clusters_need_an_address() {
        let nobody: [&str; 0] = [];
        assert_eq!(error(RateLimiterConfig::cluster(nobody)), ConfigError::NoAddress);
        let config = RateLimiterConfig::sentinel("redis://mymaster", nobody);
        assert_eq!(error(config), ConfigError::NoAddress);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let config = || RateLimiterConfig::new("redis://localhost");
        for given in [
            Duration::ZERO,
            Duration::from_nanos(999_999),
            Duration::from_secs(11),
        ] {
            assert_eq!(error(config().deadline(given)), ConfigError::Deadline { given });
        }
        for given in [0, 1025] {
            assert_eq!(
                error(config().concurrent(Some(given))),
                ConfigError::Concurrent { given }
            );
        }
        for given in [
            Duration::ZERO,
            Duration::from_micros(999),
            Duration::from_secs(3601),
        ] {
            assert_eq!(error(config().lease(given)), ConfigError::Lease { given });
        }
        assert!(config().concurrent(None).validate().is_ok());
    }

    #[test]
    fn the_address_is_not_shown_in_debug_output() {
        let config = RateLimiterConfig::new("redis://user:s3cret@host");
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}
