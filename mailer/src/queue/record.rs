//! The record of one message: how far it has come, who holds it, and what happened to it.
//!
//! Pure: each step takes the time and says whether it may be taken. Who takes it writes the record
//! back by compare-and-set, so of two that take a step at once one has to look again.
//!
//! A message is sent by who *claimed* it, and only after it was *announced*: written down that from
//! here on the mail may be out. A claim that nobody settled in time was that of a worker that died.
//! Unannounced, the mail was not sent, and the next may claim it; announced, it may have been.

use serde::{Deserialize, Serialize};

use super::job::MailJob;
use crate::service::{DeferralReason, Delivery, DeliveryError};
use crate::state::MessageState;
use crate::time::ms;

/// The last steps that a record keeps.
const LONGEST_HISTORY: usize = 50;

/// All that is known of a message; times are in ms since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// How far it has come.
    pub state: MessageState,
    /// The mailbox that sends it.
    pub mailbox: String,
    /// When it is sent again, if it is [`MessageState::Scheduled`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_on: Option<u64>,
    /// Why it is in this state, where that needs a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Tries that certainly failed.
    #[serde(default)]
    pub failures: u32,
    /// How often it had to wait.
    #[serde(default)]
    pub denials: u32,
    /// Since when it is to be sent.
    pub created_at: u64,
    /// Who sends it right now, or did when it was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// What its job says, without the mail itself.
    pub job: MailJob,
    /// The job's id in the queue.
    pub job_id: String,
    /// What happened to it, the oldest first, the last 50 at most.
    #[serde(default)]
    pub history: Vec<Step>,
}

/// Who sends a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Different for each claim.
    pub holder: String,
    /// Until when it holds unless it is settled before.
    pub until: u64,
    /// True if the mail may be out from now on.
    #[serde(default)]
    pub announced: bool,
}

/// Something that happened to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub at: u64,
    /// What it came to.
    pub state: MessageState,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a step cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not its time yet.
    #[error("it is scheduled for later")]
    NotYet {
        /// When it is.
        scheduled_on: u64,
    },
    /// Another worker sends it.
    #[error("another worker is sending it")]
    Held {
        /// Until when that one's claim holds.
        until: u64,
    },
    /// It is in a state in which this cannot be done.
    #[error("it is {0}")]
    State(MessageState),
    /// The claim is not one's own any more.
    #[error("its claim was lost to somebody else")]
    Lost,
}

/// What a claim came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimable {
    /// Send it.
    Claimed,
    /// Who held it before may have sent it: it is [`MessageState::Unknown`] from now on.
    Abandoned,
}

/// Whether a message that is being sent still is.
enum Hold {
    /// It is.
    By { until: u64 },
    /// Not any more, and it was not handed over.
    Unsent,
    /// Not any more, and it may have been handed over.
    MaybeSent,
}

/// What a person decides about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It has been sent.
    Sent,
    /// Send it (again), now.
    Send,
    /// Do not send it.
    Drop,
}

impl Record {
    /// The record of a message that nobody has seen before.
    #[must_use]
    pub fn new(job: MailJob, job_id: String, mailbox: String, created_at: u64, now: u64) -> Self {
        let mut record = Self {
            state: MessageState::Pending,
            mailbox,
            scheduled_on: None,
            reason: None,
            failures: 0,
            denials: 0,
            created_at,
            claim: None,
            job,
            job_id,
            history: Vec::new(),
        };
        record.enter(MessageState::Pending, None, now);
        record
    }

    /// Claims the message to send it, until `until` unless it is settled before.
    pub fn claim(&mut self, holder: &str, until: u64, now: u64) -> Result<Claimable, Refusal> {
        match self.state {
            MessageState::Pending => {}
            MessageState::Scheduled => {
                if let Some(scheduled_on) = self.scheduled_on.filter(|&at| now < at) {
                    return Err(Refusal::NotYet { scheduled_on });
                }
            }
            MessageState::Sending => match self.hold(now) {
                Hold::By { until } => return Err(Refusal::Held { until }),
                Hold::Unsent => {}
                Hold::MaybeSent => {
                    // The claim stays, so that who holds it can still say what came of the mail.
                    let reason = "the worker that sent it ended without a word";
                    self.enter(MessageState::Unknown, Some(reason.to_owned()), now);
                    return Ok(Claimable::Abandoned);
                }
            },
            MessageState::Sent | MessageState::Failed | MessageState::Unknown => {
                return Err(Refusal::State(self.state));
            }
        }
        self.enter(MessageState::Sending, None, now);
        self.claim = Some(Claim {
            holder: holder.to_owned(),
            until,
            announced: false,
        });
        Ok(Claimable::Claimed)
    }

    /// Writes down that from now on the mail may be out. Who claimed it hands the mail over once at most
    /// for a claim; a second call is a repetition of the first, whose answer was lost.
    pub fn announce(&mut self, holder: &str, until: u64) -> Result<(), Refusal> {
        let claim = self.claim.as_mut().filter(|claim| claim.holder == holder);
        match claim {
            Some(claim) if self.state == MessageState::Sending => {
                claim.announced = true;
                claim.until = until;
                Ok(())
            }
            _ => Err(Refusal::Lost),
        }
    }

    /// True if who claimed it may have handed the mail over.
    #[must_use]
    pub fn is_announced(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.announced)
    }

    /// Writes down what the send came to. It comes late if the claim ran out meanwhile; that is in
    /// time as long as nobody else took or decided the message.
    pub fn settle(
        &mut self,
        holder: &str,
        came_to: &Result<Delivery, DeliveryError>,
        now: u64,
    ) -> Result<(), Refusal> {
        let own = self.claim.as_ref().is_some_and(|claim| claim.holder == holder);
        if !own || !matches!(self.state, MessageState::Sending | MessageState::Unknown) {
            return Err(Refusal::Lost);
        }
        self.claim = None;
        match came_to {
            Ok(Delivery::Sent) => self.enter(MessageState::Sent, None, now),
            Ok(Delivery::Scheduled(deferral)) => {
                match deferral.reason {
                    DeferralReason::Denied(_) | DeferralReason::Unavailable(_) => {
                        self.denials = self.denials.saturating_add(1);
                    }
                    DeferralReason::Failure(_) => self.failures = self.failures.saturating_add(1),
                }
                self.enter(MessageState::Scheduled, Some(deferral.reason.to_string()), now);
                self.scheduled_on = Some(ms(deferral.scheduled_on));
            }
            Err(DeliveryError::Failed(reason)) => self.enter(MessageState::Failed, Some(reason.clone()), now),
            Err(DeliveryError::Unknown(reason)) => {
                self.enter(MessageState::Unknown, Some(reason.clone()), now);
            }
        }
        Ok(())
    }

    /// Ends a message whose mail was lost: for a person to decide if it may have been sent, else as
    /// failed. While somebody sends it it does not end so.
    pub fn lose(&mut self, reason: String, now: u64) -> Result<(), Refusal> {
        let to = match self.state {
            MessageState::Pending | MessageState::Scheduled => MessageState::Failed,
            MessageState::Sending => match self.hold(now) {
                Hold::By { until } => return Err(Refusal::Held { until }),
                Hold::Unsent => MessageState::Failed,
                Hold::MaybeSent => MessageState::Unknown,
            },
            ended => return Err(Refusal::State(ended)),
        };
        if to == MessageState::Failed {
            self.claim = None;
        }
        self.enter(to, Some(reason), now);
        Ok(())
    }

    /// Does what a person decided. While somebody sends the message nothing can be decided; whoever was
    /// said to send it past the end of the claim has died.
    ///
    /// What was sent stays sent, and what has failed can be sent after all but needs no dropping.
    pub fn decide(&mut self, decision: Decision, by: &str, now: u64) -> Result<(), Refusal> {
        use MessageState::{Failed, Pending, Scheduled, Sending, Sent, Unknown};
        let from = match self.state {
            Sending => match self.hold(now) {
                Hold::By { until } => return Err(Refusal::Held { until }),
                Hold::Unsent => Pending,
                Hold::MaybeSent => Unknown,
            },
            state => state,
        };
        let to = match (decision, from) {
            (Decision::Sent, Unknown) => Sent,
            (Decision::Send, Unknown | Failed | Scheduled | Pending) => Pending,
            (Decision::Drop, Unknown | Scheduled | Pending) => Failed,
            _ => return Err(Refusal::State(self.state)),
        };
        self.claim = None;
        if to == Pending {
            // Its age and its tries begin anew: somebody wants it sent.
            self.failures = 0;
            self.created_at = now;
        }
        let reason = match decision {
            Decision::Sent => format!("{by} says that it was sent"),
            Decision::Send => format!("{by} had it sent"),
            Decision::Drop => format!("{by} dropped it"),
        };
        self.enter(to, Some(reason), now);
        Ok(())
    }

    /// What a message that is being sent comes to at this time.
    fn hold(&self, now: u64) -> Hold {
        match &self.claim {
            Some(claim) if now < claim.until => Hold::By { until: claim.until },
            Some(claim) if !claim.announced => Hold::Unsent,
            // Without a claim nobody can say that it was not sent.
            _ => Hold::MaybeSent,
        }
    }

    /// When something should have happened to the message: past that it needs looking after. `None`
    /// if nothing is to happen by itself.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        match self.state {
            MessageState::Pending => Some(self.history.last().map_or(self.created_at, |step| step.at)),
            MessageState::Scheduled => self.scheduled_on,
            MessageState::Sending => Some(self.claim.as_ref().map_or(0, |claim| claim.until)),
            MessageState::Sent | MessageState::Failed | MessageState::Unknown => None,
        }
    }

    fn enter(&mut self, state: MessageState, reason: Option<String>, now: u64) {
        self.state = state;
        self.scheduled_on = None;
        self.reason.clone_from(&reason);
        self.history.push(Step {
            at: now,
            state,
            reason,
        });
        if self.history.len() > LONGEST_HISTORY {
            self.history.remove(0);
        }
    }
}

#[cfg(test)]
mod tests;
