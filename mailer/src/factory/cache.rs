//! The mailers that have been made, each under its whole configuration.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mailrl_client::{Limits, MailRateLimiter, RateLimitedGraphMailer};

use super::FactoryError;
use super::plan::{MailerConfig, Plan};
use crate::config::GraphAccount;
use crate::graph::MicrosoftGraphMailer;
use crate::mailer::{AnyMailer, Mailer};
use crate::sendgrid::SendGridMailer;
use crate::write_ahead::WriteAhead;

#[derive(Default)]
pub(super) struct Cache {
    mailers: HashMap<MailerConfig, Mailer>,
    /// What is below the brake; it has the connections and the access token of its account.
    graph: HashMap<GraphAccount, MicrosoftGraphMailer>,
}

impl Cache {
    /// The mailer of this configuration, made when it is first asked for.
    pub(super) fn get(
        &mut self,
        config: &MailerConfig,
        limiter: &MailRateLimiter,
    ) -> Result<Mailer, FactoryError> {
        if let Some(mailer) = self.mailers.get(config) {
            return Ok(mailer.clone());
        }
        let mailer: Mailer = match config {
            MailerConfig::Graph { account, limits } => {
                let inner = WriteAhead::new(self.graph(account)?);
                Arc::new(AnyMailer(braked(inner, limiter, *limits)))
            }
            MailerConfig::SendGrid(account) => {
                let mailer = SendGridMailer::new(account)
                    .map_err(|error| FactoryError::Unusable(format!("SendGrid cannot be used: {error}")))?;
                Arc::new(AnyMailer(WriteAhead::new(mailer)))
            }
        };
        self.mailers.insert(config.clone(), mailer.clone());
        Ok(mailer)
    }

    fn graph(&mut self, account: &GraphAccount) -> Result<MicrosoftGraphMailer, FactoryError> {
        if let Some(mailer) = self.graph.get(account) {
            return Ok(mailer.clone());
        }
        let mailer = account
            .mailer()
            .map_err(|error| FactoryError::Unusable(format!("Microsoft Graph cannot be used: {error}")))?;
        self.graph.insert(account.clone(), mailer.clone());
        Ok(mailer)
    }

    /// Drops what the configuration does not mention any more. Who is sending with it goes on.
    pub(super) fn retain(&mut self, plan: &Plan) {
        let mentioned: HashSet<_> = plan.configs().collect();
        self.mailers.retain(|config, _| mentioned.contains(config));
        let accounts: HashSet<_> = mentioned
            .iter()
            .filter_map(|config| match config {
                MailerConfig::Graph { account, .. } => Some(account),
                MailerConfig::SendGrid(_) => None,
            })
            .collect();
        self.graph.retain(|account, _| accounts.contains(account));
    }
}

/// Puts the brake around a mailer.
pub(super) fn braked<M>(mailer: M, limiter: &MailRateLimiter, limits: Limits) -> RateLimitedGraphMailer<M> {
    RateLimitedGraphMailer::new(mailer, limiter.clone()).with_limits(limits)
}
