//! Where mails are while their messages wait: a folder, S3 or Azure Blob Storage.

use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

use crate::message::MessageId;

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
    /// Keeps a mail, and says where.
    pub async fn put(&self, id: &MessageId, mime: Bytes) -> Result<String, StoreError> {
        let path = Path::from_iter(["messages", &format!("{id}.eml")]);
        self.objects.put(&path, mime.into()).await?;
        Ok(path.to_string())
    }

    /// The mail that is kept there.
    pub async fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let path = Path::parse(path).map_err(|error| StoreError::Store(error.into()))?;
        Ok(self.objects.get(&path).await?.bytes().await?)
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
