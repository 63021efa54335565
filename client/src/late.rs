//! What becomes of a reservation whose answer comes too late.
//!
//! A command that was given up on may still run: a server that was frozen runs all of them once it
//! thaws. Each would hold one of the mailbox's few concurrent places until its lease ends, and a
//! stall of a second would block the mailbox for minutes. So the answer is waited for after all,
//! behind the caller's back, and settled by what became of the mail:
//!
//! - the deadline passed: the mail went out uncounted. The reservation counts it: commit. Never
//!   release, that would take the count of a mail back that is out.
//! - the caller dropped the future: the mail did not go out on its account: release.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use redis::{Cmd, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::decision::{Decision, FailOpen};
use crate::settle::Settlement;
use crate::{MailRateLimiter, Mailbox, protocol};

/// How long a late answer is waited for, if the lease is not shorter still.
const PATIENCE: Duration = Duration::from_secs(30);

/// A reservation that is being asked for.
pub(crate) struct Question {
    limiter: MailRateLimiter,
    mailbox: Mailbox,
    answer: Option<BoxFuture<'static, RedisResult<Value>>>,
    if_late: Settlement,
}

impl Question {
    pub(crate) fn ask(limiter: MailRateLimiter, mailbox: Mailbox, command: Cmd) -> Self {
        let (asking, whose) = (limiter.clone(), mailbox.clone());
        Self {
            limiter,
            mailbox,
            answer: Some(async move { asking.query(&whose, &command).await }.boxed()),
            if_late: Settlement::Release,
        }
    }

    pub(crate) async fn answer_within(mut self, deadline: Duration) -> Result<Decision, FailOpen> {
        let Some(answer) = &mut self.answer else {
            unreachable!("it is taken on drop only");
        };
        let Ok(answer) = timeout(deadline, answer).await else {
            self.if_late = Settlement::Commit;
            return Err(self.limiter.unanswered(&self.mailbox));
        };
        self.answer = None;
        protocol::read_reserve(&self.mailbox, answer)
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let (Some(answer), Ok(runtime)) = (self.answer.take(), Handle::try_current()) else {
            return;
        };
        let limiter = self.limiter.clone();
        let mailbox = self.mailbox.clone();
        let if_late = self.if_late;
        runtime.spawn(async move {
            let Ok(answer) = timeout(PATIENCE.min(limiter.lease()), answer).await else {
                return;
            };
            let Ok(decision) = protocol::read_reserve(&mailbox, answer) else {
                return;
            };
            if let Ok(Decision::Allowed(reservation)) = limiter.report(&mailbox, Ok(decision)) {
                limiter.settle_in_background(reservation, if_late);
            }
        });
    }
}
