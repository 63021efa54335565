//! Puts the commit that the command was built from into `mailrl --version`.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A commit moves the log of HEAD, whatever branch it is on.
    println!("cargo:rerun-if-changed=../.git/logs/HEAD");
    let commit = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    // A source archive has no repository around it.
    let commit = commit.as_deref().map_or("unknown", str::trim);
    println!("cargo:rustc-env=MAILRL_COMMIT={commit}");
}
