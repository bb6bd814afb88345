//! The layers hold: who may import whom, what pure modules may not touch, which dependencies may be there.
//!
//! The table below is the architecture; `src/lib.rs` tells it in words.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

/// Each module, and all it may import. Read downwards: a row names only rows above it.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("spelling", &[]),
    ("clock", &[]),
    ("alarm", &[]),
    ("base64", &[]),
    ("files", &[]),
    ("gather", &[]),
    ("glob", &[]),
    ("http1", &[]),
    ("http2", &[]),
    ("client", &["clock", "base64"]),
    ("request", &["base64", "client"]),
    ("list", &["client"]),
    ("key", &["client", "request"]),
    ("challenge", &["clock", "client", "key"]),
    ("outcome", &["gather", "glob", "request"]),
    ("limit", &["clock", "key", "list", "outcome"]),
    ("route", &["glob", "client", "request", "list", "key", "limit", "outcome"]),
    ("decision", &["units", "spelling", "clock", "client", "request", "list", "key", "limit", "outcome", "route"]),
    ("store", &["units", "clock", "files", "client", "key", "limit", "decision"]),
    ("upstream", &["alarm", "gather", "http1", "http2"]),
    ("listen", &["clock", "alarm", "gather", "http1", "http2", "client"]),
    ("record", &["clock", "files", "client", "key", "limit", "outcome", "route", "decision"]),
    (
        "gateway",
        &[
            "alarm",
            "base64",
            "gather",
            "units",
            "clock",
            "client",
            "request",
            "list",
            "key",
            "challenge",
            "limit",
            "outcome",
            "route",
            "decision",
            "store",
            "upstream",
            "listen",
            "record",
        ],
    ),
    (
        "admin",
        &[
            "units", "clock", "list", "key", "limit", "outcome", "route", "decision", "store", "upstream", "listen",
            "record",
        ],
    ),
    (
        "config",
        &[
            "units", "spelling", "glob", "clock", "files", "client", "request", "list", "key", "limit", "outcome",
            "route", "decision", "store", "upstream", "listen", "record", "gateway", "admin",
        ],
    ),
    (
        "app",
        &[
            "units", "spelling", "glob", "clock", "files", "client", "request", "list", "key", "limit", "outcome",
            "route", "decision", "store", "upstream", "listen", "record", "gateway", "admin", "config",
        ],
    ),
    (
        "cli",
        &[
            "units", "spelling", "glob", "clock", "files", "client", "request", "list", "key", "limit", "outcome",
            "route", "decision", "store", "upstream", "listen", "record", "gateway", "admin", "config", "app",
        ],
    ),
];

/// Modules that only compute: what they need is an argument.
const PURE: &[&str] = &[
    "units",
    "spelling",
    "base64",
    "glob",
    "http1",
    "http2",
    "client",
    "request",
    "list",
    "key",
    "challenge",
    "limit",
    "outcome",
    "route",
    "decision",
];

/// Words that give an effect away. `now()` also catches a clock that is asked instead of given.
const EFFECTS: &[&str] =
    &["async fn", ".await", "tokio::", "hyper::", "std::fs", "std::net::Tcp", "std::thread", "now()", "tracing::"];

/// The home of `anyhow`, the only one.
const EDGE: &[&str] = &["cli", "main"];

#[test]
fn the_table_reads_downwards() {
    for (row, (module, imports)) in MAY_IMPORT.iter().enumerate() {
        for import in *imports {
            assert!(
                MAY_IMPORT[..row].iter().any(|(above, _)| above == import),
                "`{module}` may import `{import}`, which stands beside or below it"
            );
        }
    }
}

#[test]
fn every_module_has_a_row_and_keeps_to_it() {
    let mut complaints = Vec::new();
    for source in sources() {
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(module, _)| *module == source.module) else {
            assert!(["lib", "main"].contains(&source.module.as_str()), "`{}` has no row in the table", source.module);
            continue;
        };
        for import in imports(&source.text) {
            if import != source.module && !allowed.contains(&import.as_str()) {
                complaints.push(format!("{}: `{}` imports `{import}`", source.path.display(), source.module));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn imports_are_one_path_a_line_and_never_two_levels_up() {
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            let place = || format!("{}:{}", source.path.display(), number + 1);
            assert!(!line.contains("super::super"), "{}: name the module from `crate::`", place());
            let is_use = line.trim_start().trim_start_matches("pub ").starts_with("use ");
            assert!(!(is_use && line.contains('{')), "{}: one path for each `use`", place());
        }
    }
}

#[test]
fn files_of_the_store_in_redis_import_in_no_ring() {
    const ROOT: &str = "store::redis";
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for source in sources() {
        let path = source.path.with_extension("").to_string_lossy().replace('/', "::");
        let path = path.trim_end_matches("::mod").to_owned();
        if path.starts_with(ROOT) && !path.contains("::tests") {
            files.insert(path, without_tests(&source.text));
        }
    }
    let of = |path: &str, text: &str| -> BTreeSet<String> {
        let is_folder = files.keys().any(|other| other.starts_with(&format!("{path}::")));
        let above = path.rsplit_once("::").map_or("", |(above, _)| above);
        let uses = text
            .lines()
            .filter_map(|line| line.trim_start_matches("pub ").trim_start_matches("pub(super) ").strip_prefix("use "));
        let named = uses.filter_map(|used| {
            let rooted = used.strip_prefix("crate::").map(str::to_owned);
            let beside = used.strip_prefix("super::").map(|rest| format!("{above}::{rest}"));
            let below = used.strip_prefix("self::").filter(|_| is_folder).map(|rest| format!("{path}::{rest}"));
            rooted.or(beside).or(below)
        });
        let file_of = |named: String| {
            let holds = |file: &&String| named.starts_with(&format!("{file}::")) || named == format!("{file};");
            files.keys().filter(holds).max_by_key(|file| file.len()).cloned()
        };
        named.filter_map(file_of).filter(|file| file != path).collect()
    };
    let mut waiting: BTreeMap<String, BTreeSet<String>> =
        files.iter().map(|(path, text)| (path.clone(), of(path, text))).collect();
    assert!(waiting.values().map(BTreeSet::len).sum::<usize>() > files.len(), "the imports were not found");
    // What imports nothing that waits is in no ring.
    while let Some(free) = waiting.iter().find(|(_, on)| on.iter().all(|file| !waiting.contains_key(file))) {
        let free = free.0.clone();
        waiting.remove(&free);
    }
    assert!(waiting.is_empty(), "in a ring, or above one: {waiting:#?}");
}

#[test]
fn pure_modules_touch_nothing_outside() {
    for source in sources().into_iter().filter(|source| PURE.contains(&source.module.as_str())) {
        for effect in EFFECTS {
            let code = without_tests(&source.text);
            assert!(!code.contains(effect), "{}: `{effect}` in a module that only computes", source.path.display());
        }
    }
}

#[test]
fn anyhow_lives_at_the_edge() {
    for source in sources() {
        let at_the_edge = EDGE.contains(&source.module.as_str());
        assert!(at_the_edge || !source.text.contains("anyhow"), "{}: an error type", source.path.display());
    }
}

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
    // Second cryptography providers, C parsers and crates nobody looks after. The lock names some that another
    // crate could be told to use, and is not.
    let unwanted = ["ring", "unsafe-libyaml", "serde_yml", "rustls-pemfile", "openssl-sys", "native-tls"];
    let compiled = compiled();
    assert!(compiled.iter().any(|name| name == "rustls"), "the tree was not read");
    for name in compiled {
        assert!(!unwanted.contains(&name.as_str()), "{name} is in the tree");
    }
}

struct Source {
    /// The top-level module the file belongs to.
    module: String,
    path: PathBuf,
    text: String,
}

/// Every file below `src/` that is not made of tests.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("src can be read") {
            let path = entry.expect("src can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let below = path.strip_prefix(&root).expect("found below src").to_owned();
                let first = below.components().next().expect("a file has a name");
                let module = Path::new(first.as_os_str()).file_stem().expect("a file has a name");
                let text = fs::read_to_string(&path).expect("src can be read");
                found.push(Source { module: module.to_string_lossy().into_owned(), path: below, text });
            }
        }
    }
    assert!(found.len() > MAY_IMPORT.len(), "the sources were not found");
    found
}

/// The top-level modules a text names after `crate::`.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect())
        .collect()
}

/// Tests may sleep, read and wait; they come last in a file.
fn without_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
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
