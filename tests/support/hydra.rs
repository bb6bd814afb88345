//! Hydra, a tool that guesses passwords for a living.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

/// Guesses alice's password with these words, many at a time, and returns what the tool said. `form` is the login as hydra
/// is told of it: path, fields and the sign of a success.
pub fn hydra(address: SocketAddr, form: &str, words: &[String]) -> String {
    let folder = tempfile::tempdir().expect("a folder for the words");
    fs::write(folder.path().join("words"), words.join("\n")).expect("a file in the folder");
    let output = Command::new("timeout")
        .args(["60", "hydra", "-I", "-t", "16", "-l", "alice", "-P", "words", "-s", &address.port().to_string()])
        .args(["127.0.0.1", "http-post-form", form])
        .current_dir(folder.path())
        .output()
        .expect("hydra is installed: ./tests/run installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
