//! The Redis that is asked: one server, one whose primary the sentinels name, or a cluster.

use redis::{Cmd, RedisResult, Value};

use crate::Mailbox;
use crate::cluster::Cluster;
use crate::connection::Link;

/// The Redis that is asked.
pub(crate) enum Servers {
    One(Link),
    Cluster(Cluster),
}

impl Servers {
    /// Asks whoever has the mailbox; an error reply is an error.
    pub(crate) async fn query(&self, mailbox: &Mailbox, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::One(link) => link.ask(command, false).await.map_err(|failure| failure.error),
            Self::Cluster(cluster) => cluster.query(mailbox, command).await,
        }
    }

    /// Told when a question about this mailbox went unanswered.
    pub(crate) fn unanswered(&self, mailbox: &Mailbox) {
        match self {
            Self::One(link) => link.unanswered(),
            Self::Cluster(cluster) => cluster.unanswered(mailbox),
        }
    }
}
