//! Where the module is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// What the module is made of, from the workspace's root.
const SOURCES: [&str; 5] = ["Cargo.toml", "build.rs", "src", "core/Cargo.toml", "core/src"];

/// The module of these sources, or the one that `MAILRL_MODULE` names.
///
/// `cargo test` does not build a `cdylib`, and an old one would be tested without a word: it is built
/// here if it is missing or older than its sources.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn module_path() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| std::env::var_os("MAILRL_MODULE").map_or_else(built, PathBuf::from))
        .clone()
}

fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let directory = test
        .ancestors()
        .nth(2)
        .expect("target/<profile>/deps/<test>")
        .to_path_buf();
    let path = directory.join("libmailrl.so");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace around this crate");
    let newest = SOURCES
        .iter()
        .filter_map(|source| changed_at(&root.join(source)))
        .max();
    if changed_at(&path) < newest {
        let profile = match directory.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
            .current_dir(root)
            .args(["build", "--package", "mailrl", "--profile", profile])
            .output()
            .expect("cargo");
        assert!(
            output.status.success(),
            "the module does not build:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert!(path.exists(), "{} is missing: run `cargo build`", path.display());
    path
}

/// When a file, or the newest one below a folder, was changed; none if there is none.
fn changed_at(path: &Path) -> Option<SystemTime> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_dir() {
        return metadata.modified().ok();
    }
    let entries = path.read_dir().ok()?.flatten();
    entries.filter_map(|entry| changed_at(&entry.path())).max()
}
