//! What became of a mail that lettre's SMTP transport failed to send.

use std::error::Error as _;
use std::io;

use lettre::transport::smtp::Error;

use crate::outcome::{MailOutcome, SendFailure};

impl SendFailure for Error {
    /// The mail is out once the server has answered its content with 250; lettre ends a send at the
    /// first 4xx or 5xx, also one to the content itself ([RFC 5321, section 4.2.5]). Its client and
    /// TLS errors come up before the content. What the network does may come up after it, and lettre
    /// does not say when; only a refused connection cannot.
    ///
    /// [RFC 5321, section 4.2.5]: https://www.rfc-editor.org/rfc/rfc5321#section-4.2.5
    fn mail_outcome(&self) -> MailOutcome {
        let certainly_not_sent = self.is_permanent()
            || self.is_transient()
            || self.is_client()
            || self.is_tls()
            || self.is_transport_shutdown()
            || is_refused_connection(self);
        if certainly_not_sent {
            MailOutcome::NotSent
        } else {
            MailOutcome::Unknown
        }
    }

    fn is_permanent(&self) -> bool {
        // The inherent one: a reply of 5xx.
        Error::is_permanent(self)
    }
}

fn is_refused_connection(error: &Error) -> bool {
    std::iter::successors(error.source(), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}
