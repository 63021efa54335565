//! The body of a request, which knows whether any of it was handed to the wire.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use mailrl_client::handover::Handover;

const WAITING: u8 = 0;
const WRITTEN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The mail as the body of a request, in one piece and of known length.
pub(super) struct MailBody {
    content: Option<Bytes>,
    progress: Progress,
    handover: Option<Handover>,
}

/// The send that a body belongs to. When it is dropped the body writes nothing any more: a send
/// that was cancelled must not go out afterwards.
pub(super) struct Sending(Progress);

/// Shared by a send and its body, which the connection's own task reads at a time of its own.
/// Whoever comes first decides: the mail is written, or it never will be.
#[derive(Clone, Default)]
struct Progress(Arc<AtomicU8>);

impl MailBody {
    /// Called within the send, whose [`Handover`] it takes along to the connection's task.
    pub(super) fn new(content: Bytes) -> (Self, Sending) {
        let progress = Progress::default();
        let sending = Sending(progress.clone());
        let handover = Handover::current();
        (
            Self {
                content: Some(content),
                progress,
                handover,
            },
            sending,
        )
    }
}

impl Sending {
    /// Ends the send. True if the mail may be on the wire; else it never gets there.
    pub(super) fn give_up(&self) -> bool {
        self.0.decide(GIVEN_UP) == WRITTEN
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Progress {
    fn decide(&self, wanted: u8) -> u8 {
        match self
            .0
            .compare_exchange(WAITING, wanted, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => wanted,
            Err(decided) => decided,
        }
    }
}

/// The send was cancelled; nobody is left to read this.
#[derive(Debug, thiserror::Error)]
#[error("the send was given up before the mail was written")]
pub(super) struct GivenUp;

impl Body for MailBody {
    type Data = Bytes;
    type Error = GivenUp;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GivenUp>>> {
        let Some(content) = self.content.take() else {
            return Poll::Ready(None);
        };
        // First the handover, then the decision: whoever sees the send given up also sees a
        // handover that is right.
        if let Some(handover) = &self.handover {
            handover.set_written();
        }
        let frame = if self.progress.decide(WRITTEN) == WRITTEN {
            Ok(Frame::data(content))
        } else {
            Err(GivenUp)
        };
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content.as_ref().map_or(0, |content| content.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use mailrl_client::handover::{observe, request_not_yet_written};

    use super::*;

    fn poll(body: &mut MailBody) -> Option<Result<Bytes, GivenUp>> {
        match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(frame) => frame.map(|frame| frame.map(|frame| frame.into_data().unwrap())),
            Poll::Pending => panic!("it is never pending"),
        }
    }

    #[test]
    fn the_mail_is_one_frame_of_known_length() {
        let (mut body, _sending) = MailBody::new(Bytes::from_static(b"mail"));
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(4), false));
        assert_eq!(poll(&mut body).unwrap().unwrap(), "mail");
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
        assert!(poll(&mut body).is_none());
    }

    #[test]
    fn a_mail_that_was_given_up_is_not_written() {
        let (mut body, sending) = MailBody::new(Bytes::from_static(b"mail"));
        assert!(!sending.give_up());
        assert!(poll(&mut body).unwrap().is_err());
        assert!(!sending.give_up());

        let (mut body, sending) = MailBody::new(Bytes::from_static(b"mail"));
        drop(sending);
        assert!(poll(&mut body).unwrap().is_err());
    }

    #[test]
    fn a_mail_that_was_written_cannot_be_given_up() {
        let (mut body, sending) = MailBody::new(Bytes::from_static(b"mail"));
        assert!(poll(&mut body).unwrap().is_ok());
        assert!(sending.give_up());
    }

    #[tokio::test]
    async fn another_task_that_reads_the_body_tells_the_send() {
        let handover = Handover::default();
        let (mut body, _sending) = observe(handover.clone(), async {
            request_not_yet_written();
            MailBody::new(Bytes::from_static(b"mail"))
        })
        .await;
        assert!(handover.certainly_not_written());
        tokio::spawn(async move { assert!(poll(&mut body).unwrap().is_ok()) })
            .await
            .unwrap();
        assert!(!handover.certainly_not_written());
    }
}
