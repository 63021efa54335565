//! Where mails are while their messages wait: a folder, S3 or Azure Blob Storage.

use std::future::ready;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};

use crate::message::MessageId;
use crate::time::ms;

const FOLDER: &str = "messages";
const ENDING: &str = ".eml";

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
        let path = Path::from_iter([FOLDER, &format!("{id}{ENDING}")]);
        self.objects.put(&path, mime.into()).await?;
        Ok(path.to_string())
    }

    /// The mail that is kept there.
    pub async fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let path = Path::parse(path).map_err(|error| StoreError::Store(error.into()))?;
        Ok(self.objects.get(&path).await?.bytes().await?)
    }

    /// The mails that [`put`](Self::put) kept before this time: where they are, and whose they are.
    pub(super) fn older_than(
        &self,
        before: SystemTime,
    ) -> BoxStream<'_, Result<(String, MessageId), StoreError>> {
        let before = i64::try_from(ms(before)).unwrap_or(i64::MAX);
        let listed = self.objects.list(Some(&Path::from(FOLDER)));
        let old = move |object| match object {
            Ok(ObjectMeta {
                location,
                last_modified,
                ..
            }) if last_modified.timestamp_millis() < before => {
                let id = id_of(&location)?;
                Some(Ok((location.to_string(), id)))
            }
            Ok(_) => None,
            Err(error) => Some(Err(StoreError::from(error))),
        };
        listed.filter_map(move |object| ready(old(object))).boxed()
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

/// Whose mail is kept there.
fn id_of(path: &Path) -> Option<MessageId> {
    let name = path.filename()?.strip_suffix(ENDING)?;
    let name = percent_encoding::percent_decode_str(name).decode_utf8().ok()?;
    name.parse().ok()
}

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { path, .. } => Self::Missing(path),
            error => Self::Store(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn an_old_mail_says_whose_it_is_whatever_the_id() {
        let mails = MailStore::new(Arc::new(InMemory::new()));
        let mut kept = Vec::new();
        for id in ["m-1", "<x.1%41@example.com>", "{a}/b%c", ".."] {
            let id: MessageId = id.parse().unwrap();
            kept.push((mails.put(&id, Bytes::new()).await.unwrap(), id));
        }
        let old = async |before| {
            let old: Vec<_> = mails.older_than(before).try_collect().await.unwrap();
            old
        };
        let mut found = old(SystemTime::now() + std::time::Duration::from_secs(1)).await;
        found.sort();
        kept.sort();
        assert_eq!(found, kept);
        let hour_ago = SystemTime::now() - std::time::Duration::from_secs(3600);
        assert_eq!(old(hour_ago).await, []);
    }
}
