//! Where mails are while their messages wait: a folder, S3 or Azure Blob Storage.

use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt as _, ObjectStoreScheme, RetryConfig};
use url::Url;
use uuid::Uuid;

use crate::message::MessageId;

/// Below this are all mails; what else is in the store is none of ours.
const MAILS: &str = "messages";
/// How much of a message's id is in the name of its mail.
const LONGEST_NAME: usize = 80;
/// For how long a cloud that fails is asked again: who waits has work of its own to see to.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where mails are while their messages wait; cheap to clone.
#[derive(Debug, Clone)]
pub struct MailStore {
    objects: Arc<dyn ObjectStore>,
    kind: Kind,
}

/// Where the store is, for what differs.
#[derive(Debug, Clone)]
enum Kind {
    Folder(PathBuf),
    S3,
    Azure,
}

/// A mail that cannot be kept or had back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such mail.
    #[error("the mail {0} is not in the store")]
    Missing(String),
    /// No mail can be there.
    #[error("{0:?} is no place of a mail: give a path as messages/name.eml, without . and .. in it")]
    Path(String),
    /// The store's address cannot be used.
    #[error(
        "the address of the store of mails cannot be used ({0}): write it as file:///folder, s3://bucket/prefix or \
         az://container/prefix"
    )]
    Address(String),
    /// The store cannot be reached, or refuses.
    #[error("the store of mails: {error}. {advice}")]
    Store {
        /// What went wrong.
        #[source]
        error: object_store::Error,
        /// What to look at.
        advice: String,
    },
}

impl MailStore {
    /// The store at this address; the folder is made if it is missing, a cloud is not asked yet.
    ///
    /// | address | settings |
    /// | --- | --- |
    /// | `file:///folder` | none; only its owner can read what is in it |
    /// | `s3://bucket/prefix` | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, or a role; `AWS_ENDPOINT` (and `AWS_ALLOW_HTTP=true`) for another service that speaks S3 |
    /// | `az://container/prefix` | `AZURE_STORAGE_ACCOUNT_NAME`, and `AZURE_STORAGE_ACCOUNT_KEY`, `AZURE_STORAGE_SAS_KEY`, or `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and `AZURE_CLIENT_SECRET`, or a managed identity |
    ///
    /// The settings come from the environment; `object_store` documents those that are not named here.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        let url = Url::parse(address).map_err(|error| StoreError::Address(error.to_string()))?;
        let (scheme, prefix) =
            ObjectStoreScheme::parse(&url).map_err(|_| StoreError::Address("it has another form".into()))?;
        match scheme {
            ObjectStoreScheme::Local => match url.to_file_path() {
                Ok(folder) => Self::folder(&folder),
                Err(()) => Err(StoreError::Address("it names no folder".into())),
            },
            ObjectStoreScheme::AmazonS3 => {
                let builder = AmazonS3Builder::from_env().with_url(url).with_retry(retry());
                let built = builder.build().map_err(|error| Kind::S3.error(error))?;
                Ok(Self::new(PrefixStore::new(built, prefix), Kind::S3))
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let builder = MicrosoftAzureBuilder::from_env()
                    .with_url(url)
                    .with_retry(retry());
                let built = builder.build().map_err(|error| Kind::Azure.error(error))?;
                Ok(Self::new(PrefixStore::new(built, prefix), Kind::Azure))
            }
            _ => Err(StoreError::Address(format!("there is no {}://", url.scheme()))),
        }
    }

    fn folder(folder: &FilePath) -> Result<Self, StoreError> {
        let kind = Kind::Folder(folder.to_owned());
        make_private(&folder.join(MAILS)).map_err(|error| kind.io_error(error))?;
        // A mail that was taken in must outlast a power cut, as its record does.
        let files = LocalFileSystem::new_with_prefix(folder).map_err(|error| kind.error(error))?;
        Ok(Self::new(files.with_fsync(true), kind))
    }

    fn new(objects: impl ObjectStore, kind: Kind) -> Self {
        Self {
            objects: Arc::new(objects),
            kind,
        }
    }

    /// Keeps a mail, and says where; each time at another place, so that nobody changes a mail that
    /// somebody relies on.
    pub async fn put(&self, id: &MessageId, mime: Bytes) -> Result<String, StoreError> {
        let name: String = id
            .as_str()
            .chars()
            .map(|one| if is_harmless(one) { one } else { '_' })
            .take(LONGEST_NAME)
            .collect();
        let path = format!("{MAILS}/{name}-{}.eml", Uuid::new_v4().simple());
        let location = mail_path(&path)?;
        self.objects
            .put(&location, mime.into())
            .await
            .map_err(|error| self.kind.error(error))?;
        if let Kind::Folder(folder) = &self.kind {
            make_unreadable(&folder.join(&path))
                .await
                .map_err(|error| self.kind.io_error(error))?;
        }
        Ok(path)
    }

    /// The mail that is kept there.
    pub async fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let location = mail_path(path)?;
        let mail = async { self.objects.get(&location).await?.bytes().await };
        mail.await.map_err(|error| self.missing_or(path, error))
    }

    /// Whether there is a mail.
    pub async fn contains(&self, path: &str) -> Result<bool, StoreError> {
        match self.objects.head(&mail_path(path)?).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.kind.error(error)),
        }
    }

    /// Forgets a mail; one that is not there is no error.
    pub async fn delete(&self, path: &str) -> Result<(), StoreError> {
        match self.objects.delete(&mail_path(path)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.kind.error(error)),
        }
    }

    /// Where the mails are that were kept before this time.
    #[must_use = "a stream does nothing until it is read"]
    pub fn list_older_than(&self, time: SystemTime) -> BoxStream<'_, Result<String, StoreError>> {
        self.objects
            .list(Some(&Path::from(MAILS)))
            .try_filter_map(move |found| async move {
                let is_older = SystemTime::from(found.last_modified) < time;
                Ok(is_older.then(|| found.location.to_string()))
            })
            .map_err(|error| self.kind.error(error))
            .boxed()
    }

    fn missing_or(&self, path: &str, error: object_store::Error) -> StoreError {
        match error {
            object_store::Error::NotFound { .. } => StoreError::Missing(path.to_owned()),
            error => self.kind.error(error),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(
                formatter,
                "Please see to it that {} is a folder that this user may write to",
                folder.display()
            ),
            Self::S3 => formatter.write_str(
                "Please check the bucket, and AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for another \
                 service than Amazon's, AWS_ENDPOINT",
            ),
            Self::Azure => formatter.write_str(
                "Please check the container, and AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY (or \
                 AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET)",
            ),
        }
    }
}

impl Kind {
    fn error(&self, error: object_store::Error) -> StoreError {
        StoreError::Store {
            error,
            advice: self.to_string(),
        }
    }

    fn io_error(&self, error: std::io::Error) -> StoreError {
        self.error(object_store::Error::Generic {
            store: "folder",
            source: error.into(),
        })
    }
}

/// The place of a mail as a job names it, which may be anybody's word.
pub(super) fn mail_path(path: &str) -> Result<Path, StoreError> {
    let wrong = || StoreError::Path(path.chars().take(200).collect());
    let location = Path::parse(path).map_err(|_| wrong())?;
    let is_mail = location.as_ref() == path && path.starts_with("messages/");
    is_mail.then_some(location).ok_or_else(wrong)
}

/// What every store and file system takes in a name.
fn is_harmless(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '@')
}

fn retry() -> RetryConfig {
    RetryConfig {
        max_retries: 3,
        retry_timeout: PATIENCE,
        ..RetryConfig::default()
    }
}

#[cfg(unix)]
fn make_private(folder: &FilePath) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &FilePath) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(unix)]
async fn make_unreadable(file: &FilePath) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    tokio::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).await
}

#[cfg(not(unix))]
async fn make_unreadable(_: &FilePath) -> std::io::Result<()> {
    Ok(())
}
