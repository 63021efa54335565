//! Where mails are while their messages wait: a folder, S3 or Azure Blob Storage.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

use crate::message::MessageId;

const FOLDER: &str = "messages";

/// Where mails are while their messages wait; cheap to clone.
#[derive(Debug, Clone)]
pub struct MailStore {
    objects: Arc<dyn ObjectStore>,
}

/// A mail that cannot be kept or had back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such mail.
    #[error("the mail {0} is not in the store")]
    Missing(String),
    /// The store cannot be reached, or refuses.
    #[error("the store of mails: {0}")]
    Store(#[source] object_store::Error),
}

impl MailStore {
    /// Keeps mails there.
    #[must_use]
    pub fn new(objects: Arc<dyn ObjectStore>) -> Self {
        Self { objects }
    }

    /// Keeps a mail, and says where.
    pub async fn put(&self, id: &MessageId, mime: Bytes) -> Result<String, StoreError> {
        let path = Path::from_iter([FOLDER, &format!("{id}.eml")]);
        self.objects.put(&path, mime.into()).await?;
        Ok(path.to_string())
    }

    /// The mail that is kept there.
    pub async fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let path = Path::parse(path).map_err(|error| StoreError::Store(error.into()))?;
        Ok(self.objects.get(&path).await?.bytes().await?)
    }

    /// Where the mails are that were kept before this time.
    #[must_use = "a stream does nothing until it is read"]
    pub fn list_older_than(&self, time: SystemTime) -> BoxStream<'_, Result<String, StoreError>> {
        self.objects
            .list(Some(&Path::from(FOLDER)))
            .try_filter_map(move |found| async move {
                let is_older = SystemTime::from(found.last_modified) < time;
                Ok(is_older.then(|| found.location.to_string()))
            })
            .map_err(StoreError::from)
            .boxed()
    }

    /// Forgets a mail; one that is not there is no error.
    pub async fn delete(&self, path: &str) -> Result<(), StoreError> {
        let path = Path::parse(path).map_err(|error| StoreError::Store(error.into()))?;
        match self.objects.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { path, .. } => Self::Missing(path),
            error => Self::Store(error),
        }
    }
}
