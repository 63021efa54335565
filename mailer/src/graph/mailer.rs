//! The mailer: one mail, one request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::encoded_len;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lettre::AsyncTransport;
use lettre::address::Envelope;
use mailrl_client::handover;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Body, Client, StatusCode, Url};
use tokio::time::Instant;

use super::answer::{Answer, request_id};
use super::body::MailBody;
use super::builder::{MicrosoftGraphMailerBuilder, below};
use super::error::{GraphError, MailFault};
use super::recipients;
use super::secret::Secret;
use super::token::{AccessToken, TokenSource};

/// Graph's limit on a request's body: "Microsoft Graph service-specific throttling limits" and the
/// page of `sendMail` say 4 MB, and count the base64.
const LARGEST_REQUEST: usize = 4 * 1024 * 1024;

/// The largest mail that Graph takes, in bytes of MIME: 3 MiB, which are 4 MiB in base64.
pub const LARGEST_MAIL: usize = LARGEST_REQUEST / 4 * 3;

/// Sends mail through Microsoft Graph; see the [module](super) for what it promises.
///
/// It needs the application permission `Mail.Send`. A clone shares connections and token.
#[derive(Clone)]
pub struct MicrosoftGraphMailer {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    graph_url: Url,
    tokens: TokenSource,
    timeout: Duration,
}

/// Graph has accepted the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphAccepted {
    /// Graph's `request-id`, by which Microsoft's support finds the request. Graph gives no other
    /// name to the mail.
    pub request_id: Option<String>,
}

/// A mail that is ready to be posted.
struct Post {
    url: Url,
    content: Bytes,
}

impl MicrosoftGraphMailer {
    /// A mailer for all mailboxes of a tenant (its id or one of its domains), as this app.
    pub fn builder(
        tenant: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: Secret,
    ) -> MicrosoftGraphMailerBuilder {
        MicrosoftGraphMailerBuilder::new(tenant.into(), client_id.into(), client_secret)
    }

    pub(super) fn new(client: Client, graph_url: Url, tokens: TokenSource, timeout: Duration) -> Self {
        Self {
            inner: Arc::new(Inner {
                client,
                graph_url,
                tokens,
                timeout,
            }),
        }
    }

    /// How long one send may take in all.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    fn prepare(&self, envelope: &Envelope, mail: &[u8]) -> Result<Post, GraphError> {
        let mailbox = envelope.from().ok_or(MailFault::NoSender)?;
        let mail = recipients::address(envelope, mail)?;
        let encoded = encoded_len(mail.len(), true).unwrap_or(usize::MAX);
        if encoded > LARGEST_REQUEST {
            return Err(MailFault::TooLarge {
                encoded,
                limit: LARGEST_REQUEST,
            }
            .into());
        }
        Ok(Post {
            url: below(
                &self.inner.graph_url,
                &["v1.0", "users", mailbox.as_ref(), "sendMail"],
            ),
            content: STANDARD.encode(mail).into(),
        })
    }

    async fn post(
        &self,
        post: Post,
        token: &AccessToken,
        deadline: Instant,
    ) -> Result<GraphAccepted, GraphError> {
        let (body, sending) = MailBody::new(post.content);
        let request = self
            .inner
            .client
            .post(post.url)
            .header(AUTHORIZATION, token.authorization())
            .header(CONTENT_TYPE, "text/plain")
            .timeout(deadline.saturating_duration_since(Instant::now()))
            .body(Body::wrap(body));
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Err(GraphError::request(error, sending.give_up())),
        };
        if response.status() == StatusCode::ACCEPTED {
            return Ok(GraphAccepted {
                request_id: request_id(&response),
            });
        }
        if response.status() == StatusCode::UNAUTHORIZED {
            self.inner.tokens.discard(token);
        }
        match Answer::read(response).await {
            Ok(answer) => Err(answer.into()),
            Err(error) => Err(GraphError::request(error, true)),
        }
    }
}

#[async_trait]
impl AsyncTransport for MicrosoftGraphMailer {
    type Ok = GraphAccepted;
    type Error = GraphError;

    /// Sends from the envelope's sender to the envelope's recipients.
    async fn send_raw(&self, envelope: &Envelope, email: &[u8]) -> Result<GraphAccepted, GraphError> {
        handover::request_not_yet_written();
        let deadline = Instant::now() + self.inner.timeout;
        let post = self.prepare(envelope, email)?;
        let token = self.inner.tokens.get(deadline).await?;
        self.post(post, &token, deadline).await
    }
}

impl fmt::Debug for MicrosoftGraphMailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MicrosoftGraphMailer")
            .field("graph_url", &self.inner.graph_url.as_str())
            .field("timeout", &self.inner.timeout)
            .finish_non_exhaustive()
    }
}
