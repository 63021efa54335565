//! The command `mailrl`.
fn main() {}
