//! A simulator, and a configuration file for it.

use std::path::PathBuf;

use graph_sim::GraphSim;
use mailrl_mailer::MailerFactory;
use mailrl_mailer::config::MailConfig;
use tempfile::TempDir;

use crate::common::{SECRET, sim};

pub const PASSWORD: &str = "pass-word-of-redis";

/// A Graph, and a folder with a configuration for it.
pub struct Setup {
    pub graph: GraphSim,
    redis_url: String,
    pub folder: TempDir,
}

impl Setup {
    /// Without a Redis: mail goes out without the brake.
    pub async fn new() -> Self {
        Self::with(format!(
            "redis://u:{PASSWORD}@127.0.0.1:{}",
            test_support::free_port()
        ))
        .await
    }

    pub async fn with(redis_url: String) -> Self {
        let setup = Self {
            graph: sim().start().await,
            redis_url,
            folder: tempfile::tempdir().unwrap(),
        };
        setup.file("secret", SECRET);
        setup
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn account(&self) -> String {
        let url = self.graph.base_url();
        format!(
            "tenant = 'tenant'\nclient_id = 'app'\nclient_secret_file = 'secret'\nlogin_url = '{url}'\n\
             graph_url = '{url}'\n"
        )
    }

    /// Writes a configuration of Redis, Graph and this.
    pub fn write(&self, more: &str) -> PathBuf {
        let (redis, account) = (&self.redis_url, self.account());
        // Deadline: a machine that is busy with other tests is not what is tested here.
        let text = format!("[redis]\nurl = '{redis}'\ndeadline_ms = 5000\n[graph]\n{account}{more}");
        self.file("mailrl.toml", &text)
    }

    pub fn tenant(&self, name: &str) -> String {
        format!(
            "[tenant.{name}]\nprovider = 'microsoft-graph'\n{}",
            self.account()
        )
    }

    pub fn factory(&self, more: &str) -> MailerFactory {
        let path = self.write(more);
        MailerFactory::watch(move || MailConfig::read(&path)).unwrap()
    }
}
