//! The tenant's access token: had once, kept until shortly before it expires.
//!
//! Microsoft's page is "OAuth 2.0 client credentials flow on the Microsoft identity platform".

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::answer::{printable, read_body};
use super::error::root_cause;
use super::secret::Secret;

/// A token is not used in the last tenth of its life, and not in the last five minutes of a long one.
const LONGEST_MARGIN: Duration = Duration::from_mins(5);
/// Entra's longest default is 90 minutes; what claims more is looked at again.
const LONGEST_LIFE: Duration = Duration::from_hours(24);

/// What a token is asked for with.
pub(super) struct Credentials {
    pub(super) endpoint: Url,
    pub(super) client_id: String,
    pub(super) client_secret: Secret,
    pub(super) scope: String,
}

pub(super) struct TokenSource {
    credentials: Credentials,
    client: Client,
    /// Held by the one that asks for a token, while the others wait.
    asking: Mutex<()>,
    known: StdMutex<Known>,
}

#[derive(Default)]
struct Known {
    token: Option<AccessToken>,
    /// How often was asked to the end, and why it failed the last time.
    asked: u64,
    failure: Option<TokenError>,
}

/// A token as the value of the `Authorization` header. A clone is the same token.
#[derive(Clone)]
pub(super) struct AccessToken(Arc<Issued>);

struct Issued {
    authorization: HeaderValue,
    good_until: Instant,
}

impl AccessToken {
    pub(super) fn authorization(&self) -> HeaderValue {
        self.0.authorization.clone()
    }
}

impl TokenSource {
    pub(super) fn new(credentials: Credentials, client: Client) -> Self {
        Self {
            credentials,
            client,
            asking: Mutex::new(()),
            known: StdMutex::default(),
        }
    }

    /// The tenant's token; asked for if there is none that is good for long enough.
    ///
    /// One asks at a time. Those who wait meanwhile get what it gets, a failure too; nobody later
    /// does.
    pub(super) async fn get(&self, deadline: Instant) -> Result<AccessToken, TokenError> {
        let asked = {
            let known = self.known();
            if let Some(token) = known.good_token() {
                return Ok(token);
            }
            known.asked
        };
        let _asking = timeout_at(deadline, self.asking.lock())
            .await
            .map_err(|_| TokenError::new(Fault::TimedOut))?;
        {
            let known = self.known();
            if let Some(token) = known.good_token() {
                return Ok(token);
            }
            if known.asked != asked
                && let Some(failure) = &known.failure
            {
                return Err(failure.clone());
            }
        }
        let result = self.ask(deadline).await;
        let mut known = self.known();
        known.asked += 1;
        known.token = result.as_ref().ok().cloned();
        known.failure = result.as_ref().err().cloned();
        result
    }

    /// Forgets a token that Graph did not take, unless there is a newer one already.
    pub(super) fn discard(&self, token: &AccessToken) {
        let mut known = self.known();
        if known
            .token
            .as_ref()
            .is_some_and(|kept| Arc::ptr_eq(&kept.0, &token.0))
        {
            known.token = None;
        }
    }

    async fn ask(&self, deadline: Instant) -> Result<AccessToken, TokenError> {
        let asked_at = Instant::now();
        let credentials = &self.credentials;
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", &credentials.client_id),
            ("client_secret", credentials.client_secret.expose()),
            ("scope", &credentials.scope),
        ];
        let request = self.client.post(credentials.endpoint.clone()).form(&form);
        let response = request
            .timeout(deadline.saturating_duration_since(asked_at))
            .send()
            .await?;
        let status = response.status();
        let body = read_body(response).await?;
        if status != StatusCode::OK {
            return Err(refusal(status, &body));
        }
        let token = issued(&body, asked_at).ok_or_else(|| TokenError::new(Fault::Unreadable))?;
        tracing::debug!(endpoint = %credentials.endpoint, "got an access token");
        Ok(token)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn good_token(&self) -> Option<AccessToken> {
        self.token
            .clone()
            .filter(|token| token.0.good_until > Instant::now())
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: u64,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: Option<String>,
    error_description: Option<String>,
}

fn issued(body: &[u8], asked_at: Instant) -> Option<AccessToken> {
    let answer = serde_json::from_slice::<TokenAnswer>(body).ok()?;
    let mut authorization = HeaderValue::from_str(&format!("Bearer {}", answer.access_token)).ok()?;
    authorization.set_sensitive(true);
    let good_until = asked_at + usable(Duration::from_secs(answer.expires_in));
    Some(AccessToken(Arc::new(Issued {
        authorization,
        good_until,
    })))
}

fn usable(life: Duration) -> Duration {
    let life = life.min(LONGEST_LIFE);
    life.saturating_sub(LONGEST_MARGIN.min(life / 10))
}

/// Of Entra's description only its number: the rest is long, and not ours to show.
fn refusal(status: StatusCode, body: &[u8]) -> TokenError {
    let answer = serde_json::from_slice::<ErrorAnswer>(body).ok();
    let (error, description) = answer.map_or((None, None), |answer| (answer.error, answer.error_description));
    let number = description.and_then(|text| text.split(':').next().map(str::to_owned));
    let number = number.filter(|number| {
        let digits = number.strip_prefix("AADSTS").unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    TokenError::new(Fault::Refused {
        status,
        error: error.map(|error| printable(&error)),
        number,
    })
}

/// Why there is no token; one failure is shared by all who waited for it.
#[derive(Clone)]
pub(super) struct TokenError(Arc<Fault>);

#[derive(Debug)]
enum Fault {
    TimedOut,
    Connection(reqwest::Error),
    Refused {
        status: StatusCode,
        error: Option<String>,
        number: Option<String>,
    },
    Unreadable,
}

impl TokenError {
    fn new(fault: Fault) -> Self {
        Self(Arc::new(fault))
    }

    pub(super) fn is_timeout(&self) -> bool {
        matches!(*self.0, Fault::TimedOut)
    }
}

impl From<reqwest::Error> for TokenError {
    fn from(error: reqwest::Error) -> Self {
        let fault = if error.is_timeout() {
            Fault::TimedOut
        } else {
            Fault::Connection(error.without_url())
        };
        Self::new(fault)
    }
}

impl fmt::Debug for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Fault::TimedOut => f.write_str("the login server did not answer in time"),
            Fault::Connection(error) => {
                write!(
                    f,
                    "the connection to the login server failed: {}",
                    root_cause(error)
                )
            }
            Fault::Unreadable => {
                f.write_str("the login server's answer is no token. Please check the login address")
            }
            Fault::Refused {
                status,
                error,
                number,
            } => {
                write!(f, "the login server answered {}", status.as_u16())?;
                if let Some(error) = error {
                    write!(f, " {error}")?;
                }
                if let Some(number) = number {
                    write!(f, " ({number}, see https://login.microsoftonline.com/error)")?;
                }
                Ok(())
            }
        }
    }
}

impl StdError for TokenError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.0 {
            Fault::Connection(error) => Some(error),
            _ => None,
        }
    }
}
