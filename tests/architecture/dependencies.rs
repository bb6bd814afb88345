//! Which dependencies are compiled, and from which versions on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn dependencies_stand_above_their_floors() {
    // Below these versions each had a published flaw that a client, or a server that is not ours, could reach.
    let floors = [
        ("h2", "0.4.16"),
        ("hyper", "1.11.0"),
        ("rustls", "0.23.18"),
        ("rustls-webpki", "0.103.13"),
        ("aws-lc-sys", "0.39.0"),
        ("tracing-subscriber", "0.3.20"),
        ("prometheus-client", "0.25.2"),
    ];
    let locked = locked();
    for (name, floor) in floors {
        let (_, version) = locked.iter().find(|(locked, _)| locked == name).expect("a dependency of ours is locked");
        assert!(numbers(version) >= numbers(floor), "{name} {version} is below {floor}");
    }
    // 1.54.0 was withdrawn for a regression in its timers.
    assert!(!locked.contains(&("tokio".to_owned(), "1.54.0".to_owned())));
}

#[test]
fn nothing_unwanted_is_compiled() {
    // Second cryptography providers, C parsers and unmaintained crates. The lock names some that another
    // crate could be told to use, and is not.
    let unwanted = ["ring", "unsafe-libyaml", "serde_yml", "rustls-pemfile", "openssl-sys", "native-tls"];
    let compiled = compiled();
    assert!(compiled.iter().any(|name| name == "rustls"), "the tree was not read");
    for name in compiled {
        assert!(!unwanted.contains(&name.as_str()), "{name} is in the tree");
    }
}

#[test]
fn random_numbers_come_from_the_system_alone() {
    // What would gather entropy from the time of computations has names that begin so.
    let binary = fs::read(env!("CARGO_BIN_EXE_portcullis")).expect("it is built for this test");
    let has = |symbol: &[u8]| memchr::memmem::find(&binary, symbol).is_some();
    assert!(has(b"RAND_bytes"), "the binary has no names");
    assert!(!has(b"jent_"), "`.cargo/config.toml` did not reach the build of the library of cryptography");
}

#[test]
fn the_fuzz_targets_share_the_dependencies_that_are_checked() {
    // In other profiles, or with other settings, all of them would be compiled a second time.
    let profile = |manifest: &str| -> Vec<String> {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).expect("a manifest");
        let tables = text.split("\n[").filter(|table| table.starts_with("profile.dev"));
        let lines = tables.flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    let ours = profile("Cargo.toml");
    assert!(ours.len() > 10, "{ours:?}");
    let fuzzing = profile("fuzz/Cargo.toml");
    assert_eq!(fuzzing[..ours.len().min(fuzzing.len())], ours);
}

fn locked() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
    let lock = fs::read_to_string(path).expect("the lock is committed");
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned))?;
        Some(line.trim_matches([' ', '=', '"']).to_owned())
    };
    lock.split("[[package]]").filter_map(|block| Some((field(block, "name")?, field(block, "version")?))).collect()
}

/// The names of all crates that become part of the binary.
fn compiled() -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}
