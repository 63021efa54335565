//! Mail through `SendGrid`'s SMTP relay, or any other SMTP server, on lettre's SMTP client.
//!
//! `SendGrid` keeps to limits of its own, so this mailer never asks for a mailbox's budget.
//!
//! lettre's client waits for answers without end; here a whole send has a time limit. lettre's
//! `AsyncSmtpTransport` would not tell how far a send had come by then, so the connection is made
//! here in a step of its own, in which no mail can get out. Each mail has a connection of its own: a
//! send that is dropped half way then leaves nothing behind that another mail would be written to.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use lettre::AsyncTransport;
use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Response;
use mailrl_client::{MailOutcome, SendFailure, handover};
use tokio::time::{Instant, timeout_at};

use crate::config::{SendGridAccount, Tls};

/// The user name that `SendGrid` wants with an API key ("Integrating with the SMTP API").
const USER: &str = "apikey";
/// How long a server may take to take its leave.
const FAREWELL: Duration = Duration::from_secs(1);

/// Sends mail through `SendGrid`; see the [module](self).
#[derive(Clone)]
pub struct SendGridMailer {
    account: SendGridAccount,
    tls: TlsParameters,
    credentials: Credentials,
}

impl SendGridMailer {
    /// Checks the account's options; it connects for each mail.
    ///
    /// # Errors
    /// If TLS cannot be had for this host.
    pub fn new(account: &SendGridAccount) -> Result<Self, Error> {
        Ok(Self {
            account: account.clone(),
            tls: TlsParameters::new(account.host.clone())?,
            credentials: Credentials::new(USER.to_owned(), account.api_key.expose().to_owned()),
        })
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let name = ClientId::default();
        let server = (&*self.account.host, self.account.port);
        let implicit = (self.account.tls == Tls::Implicit).then(|| self.tls.clone());
        // The time limit is the caller's.
        let mut connection = AsyncSmtpConnection::connect_tokio1(server, None, &name, implicit, None).await?;
        if self.account.tls == Tls::StartTls {
            connection.starttls(self.tls.clone(), &name).await?;
        }
        connection.auth(DEFAULT_MECHANISMS, &self.credentials).await?;
        Ok(connection)
    }
}

#[async_trait]
impl AsyncTransport for SendGridMailer {
    type Ok = Response;
    type Error = SendGridError;

    async fn send_raw(&self, envelope: &Envelope, email: &[u8]) -> Result<Response, SendGridError> {
        handover::request_not_yet_written();
        let deadline = Instant::now() + self.account.timeout;
        let mut connection = match timeout_at(deadline, self.connect()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(SendGridError::Connect(error)),
            Err(_) => return Err(SendGridError::ConnectTimeout(self.account.timeout)),
        };
        handover::request_written();
        let sent = match timeout_at(deadline, connection.send(envelope, email)).await {
            Ok(sent) => sent.map_err(SendGridError::Send),
            Err(_) => Err(SendGridError::SendTimeout(self.account.timeout)),
        };
        if sent.is_ok() {
            // The mail is out, and its sender need not wait for the leave-taking.
            tokio::spawn(async move { tokio::time::timeout(FAREWELL, connection.quit()).await });
        }
        sent
    }
}

impl fmt::Debug for SendGridMailer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SendGridMailer")
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

/// Why a mail did not go out through `SendGrid`, or may have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendGridError {
    /// There is no connection, or the server did not take the API key.
    #[error("the SMTP server cannot be used, nothing was sent: {0}")]
    Connect(#[source] Error),
    /// There was no connection within the time limit.
    #[error("the SMTP server was not ready within {0:?}, nothing was sent")]
    ConnectTimeout(Duration),
    /// The server refused the mail, or the connection failed.
    #[error("the SMTP server did not take the mail: {0}")]
    Send(#[source] Error),
    /// The server did not answer to the mail within the time limit.
    #[error("the SMTP server did not answer to the mail within {0:?}, which may have been sent")]
    SendTimeout(Duration),
}

impl SendFailure for SendGridError {
    fn mail_outcome(&self) -> MailOutcome {
        match self {
            Self::Connect(_) | Self::ConnectTimeout(_) => MailOutcome::NotSent,
            Self::Send(error) => error.mail_outcome(),
            Self::SendTimeout(_) => MailOutcome::Unknown,
        }
    }

    fn is_permanent(&self) -> bool {
        match self {
            Self::Send(error) => SendFailure::is_permanent(error),
            // A wrong API key is refused for good, but not the mail's fault.
            Self::Connect(_) | Self::ConnectTimeout(_) | Self::SendTimeout(_) => false,
        }
    }
}
