//! Where mails are kept: a folder.

use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use mailrl_mailer::MessageId;
use mailrl_mailer::queue::{MailStore, StoreError};
use tempfile::TempDir;

fn folder() -> (TempDir, MailStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = MailStore::open(&format!("file://{}/new/folder", folder.path().display())).unwrap();
    (folder, store)
}

fn id(id: &str) -> MessageId {
    id.parse().unwrap()
}

#[tokio::test]
async fn a_mail_comes_back_as_it_was_kept_until_it_is_deleted() {
    let (_folder, store) = folder();
    let mail: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let path = store.put(&id("m"), mail.clone().into()).await.unwrap();
    assert!(path.starts_with("messages/m-"), "{path}");
    assert_eq!(store.get(&path).await.unwrap(), mail);
    assert!(store.contains(&path).await.unwrap());
    store.delete(&path).await.unwrap();
    store.delete(&path).await.unwrap();
    assert!(!store.contains(&path).await.unwrap());
    let error = store.get(&path).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Missing(ref missing) if *missing == path),
        "{error}"
    );
}

#[tokio::test]
async fn a_second_mail_of_an_id_leaves_the_first_as_it_is() {
    let (_folder, store) = folder();
    let first = store.put(&id("m"), "first".into()).await.unwrap();
    let second = store.put(&id("m"), "second".into()).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(store.get(&first).await.unwrap(), "first");
}

#[tokio::test]
async fn no_id_leads_out_of_the_folder_and_each_keeps_its_mail() {
    let (folder, store) = folder();
    let ids = [
        "..",
        ".",
        "../../x",
        "/etc/passwd",
        "..%2F..%2Fx",
        "%2e%2e/",
        "<a/b@c.d>",
        "a\\..\\b",
        "x#1",
        "~",
        "-rf",
        "CON",
        "\"'`$(id)|&;*?",
        &"<".repeat(200),
    ];
    let mut paths = Vec::new();
    for name in ids {
        let path = store.put(&id(name), name.to_owned().into()).await.unwrap();
        assert_eq!(store.get(&path).await.unwrap(), name);
        paths.push(path);
    }
    let inside = folder.path().join("new/folder/messages");
    let files = inside.read_dir().unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(files.filter(|path| path.is_file()).count(), paths.len());
    let outside: Vec<_> = folder
        .path()
        .read_dir()
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert_eq!(outside, ["new"]);
}

#[tokio::test]
async fn a_path_that_leads_elsewhere_is_refused_whatever_is_there() {
    let (folder, store) = folder();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    std::fs::write(folder.path().join("new/folder/other"), "other").unwrap();
    for path in [
        "../../secret",
        "../secret",
        "messages/../../../secret",
        "messages/../other",
        "/etc/passwd",
        "/messages/a",
        "other",
        "other/a",
        "messages",
        "messages/",
        "messages//a",
        "messages/./a",
        "",
        "file:///etc/passwd",
        "messages/a\0",
    ] {
        for error in [
            store.get(path).await.unwrap_err(),
            store.delete(path).await.unwrap_err(),
            store.contains(path).await.unwrap_err(),
        ] {
            assert!(matches!(error, StoreError::Path(_)), "{path}: {error}");
            assert!(error.to_string().contains("messages/name.eml"), "{error}");
        }
    }
    for path in ["messages/%2e%2e/%2e%2e/other", "messages/..%2F..%2Fother"] {
        assert!(
            matches!(store.get(path).await, Err(StoreError::Missing(_))),
            "{path}"
        );
    }
    assert!(folder.path().join("secret").exists());
    assert!(folder.path().join("new/folder/other").exists());
}

#[tokio::test]
async fn who_sweeps_finds_the_mails_that_are_older_and_no_other_files() {
    let (folder, store) = folder();
    std::fs::write(folder.path().join("new/folder/other.eml"), "other").unwrap();
    let path = store.put(&id("m"), "mail".into()).await.unwrap();
    let older_than = async |time| store.list_older_than(time).try_collect::<Vec<_>>().await.unwrap();
    let now = SystemTime::now();
    assert!(older_than(now - Duration::from_mins(1)).await.is_empty());
    assert_eq!(older_than(now + Duration::from_mins(1)).await, [path]);
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_the_mails() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, store) = folder();
    let path = store.put(&id("m"), "mail".into()).await.unwrap();
    let mode = |path: &str| {
        let metadata = folder.path().join("new").join(path).metadata().unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("folder/messages"), 0o700);
    assert_eq!(mode(&format!("folder/{path}")), 0o600);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_to_is_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = MailStore::open(&format!("file://{}/mails", file.display())).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(file.to_str().unwrap()) && text.contains("may write to"),
        "{text}"
    );
    let (folder, store) = self::folder();
    let messages = folder.path().join("new/folder/messages");
    std::fs::remove_dir(&messages).unwrap();
    std::fs::write(&messages, "a file").unwrap();
    let text = store.put(&id("m"), "mail".into()).await.unwrap_err().to_string();
    assert!(text.contains("may write to"), "{text}");
}

#[test]
fn an_address_that_is_none_is_told_what_there_is() {
    for address in [
        "",
        "/folder",
        "folder",
        "file://host/folder",
        "gs://bucket",
        "https://example.com/x",
        "memory:///",
    ] {
        let text = MailStore::open(address).unwrap_err().to_string();
        assert!(text.contains("s3://bucket/prefix"), "{address}: {text}");
    }
    let text = MailStore::open("az://container/x").unwrap_err().to_string();
    assert!(text.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{text}");
}
