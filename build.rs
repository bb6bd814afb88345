//! Finds out what `portcullis --version` says: the commit that a release is built from.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={NAMED}");
    let package = env!("CARGO_PKG_VERSION");
    let named = env::var(NAMED).ok().filter(|commit| !commit.is_empty());
    // Otherwise each commit would have all tests compiled again.
    let is_debug = env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let from = match named.or_else(|| if is_debug { None } else { commit() }) {
        Some(commit) => format!("commit {commit}"),
        None if is_debug => "a debug build, commit unknown".to_owned(),
        None => "built without its history, commit unknown".to_owned(),
    };
    println!("cargo::rustc-env=PORTCULLIS_VERSION={package} ({from})");
}

/// Of the repository that this is the root of; an archive unpacked in some other one is not its history.
fn commit() -> Option<String> {
    let root = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&root).canonicalize().ok()? != Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().ok()? {
        return None;
    }
    // Where the commit is written that is checked out; a file that is not there would have this run every time.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let file = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// For a build that has the sources alone, as that of an image: who starts it knows the commit.
const NAMED: &str = "PORTCULLIS_COMMIT";
