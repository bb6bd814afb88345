//! The layers hold: who may import whom, what pure modules may not touch, which dependencies may be there.
//!
//! The table below is the architecture; `src/lib.rs` tells it in words.

mod dependencies;
mod layout;
mod shape;
mod source;
mod waiting;

use std::collections::BTreeSet;

use source::{imports, sources, use_statements, without_tests};

/// Each module, and all it may import. Read downwards: a row names only rows above it.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("word", &[]),
    ("units", &["word"]),
    ("secret", &[]),
    ("recipes", &[]),
    ("clock", &[]),
    ("timer", &[]),
    ("turn", &[]),
    ("base64", &[]),
    ("digits", &[]),
    ("network_width", &[]),
    ("corpus", &[]),
    ("files", &[]),
    ("coalesce", &[]),
    ("glob", &[]),
    ("regular_expression", &[]),
    ("pool", &[]),
    ("head", &["pool", "digits"]),
    ("http1", &["corpus", "digits", "head", "pool"]),
    ("http2", &["corpus", "digits", "head"]),
    ("tls", &[]),
    ("http_client", &["tls", "word"]),
    ("pending_reservations", &["clock"]),
    ("crowdsec", &["clock", "corpus", "http_client", "network_width", "tls", "word"]),
    ("signing", &["clock"]),
    ("client", &["clock", "base64", "head", "signing"]),
    ("request", &["base64", "digits", "corpus", "head", "client"]),
    ("jwt", &["clock", "base64", "corpus", "head", "request"]),
    ("list", &["client", "word"]),
    ("key", &["regular_expression", "head", "client", "request", "jwt", "word"]),
    ("challenge", &["clock", "signing", "key"]),
    ("outcome", &["clock", "coalesce", "glob", "regular_expression", "head", "request", "word"]),
    ("limit", &["clock", "glob", "head", "key", "list", "outcome", "units", "word"]),
    ("route", &["glob", "regular_expression", "head", "client", "request", "list", "key", "limit", "outcome", "word"]),
    (
        "decision",
        &[
            "base64",
            "recipes",
            "units",
            "clock",
            "head",
            "pool",
            "pending_reservations",
            "signing",
            "client",
            "request",
            "jwt",
            "list",
            "key",
            "limit",
            "outcome",
            "route",
        ],
    ),
    (
        "store",
        &[
            "word",
            "units",
            "clock",
            "digits",
            "base64",
            "pending_reservations",
            "corpus",
            "files",
            "timer",
            "tls",
            "signing",
            "client",
            "key",
            "limit",
            "decision",
        ],
    ),
    ("upstream", &["timer", "turn", "corpus", "coalesce", "head", "http1", "http2", "http_client", "tls", "word"]),
    ("listen", &["clock", "timer", "turn", "corpus", "coalesce", "digits", "head", "http1", "http2", "tls", "client"]),
    (
        "record",
        &[
            "word",
            "recipes",
            "clock",
            "pending_reservations",
            "crowdsec",
            "digits",
            "files",
            "head",
            "http_client",
            "tls",
            "units",
            "client",
            "request",
            "key",
            "limit",
            "outcome",
            "route",
            "decision",
        ],
    ),
    (
        "gateway",
        &[
            "word",
            "timer",
            "pending_reservations",
            "base64",
            "digits",
            "corpus",
            "coalesce",
            "pool",
            "head",
            "http_client",
            "units",
            "clock",
            "signing",
            "client",
            "request",
            "jwt",
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
    ("api", &["units", "secret", "limit"]),
    (
        "admin",
        &[
            "word",
            "api",
            "head",
            "units",
            "secret",
            "clock",
            "network_width",
            "client",
            "list",
            "key",
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
        "fronts",
        &[
            "timer", "pool", "clock", "client", "head", "key", "limit", "outcome", "decision", "listen", "gateway",
            "admin",
        ],
    ),
    (
        "config",
        &[
            "word",
            "crowdsec",
            "units",
            "secret",
            "glob",
            "regular_expression",
            "clock",
            "corpus",
            "files",
            "head",
            "tls",
            "http_client",
            "client",
            "request",
            "jwt",
            "list",
            "key",
            "limit",
            "outcome",
            "route",
            "decision",
            "store",
            "upstream",
            "listen",
            "record",
            "gateway",
            "admin",
        ],
    ),
    ("convert", &["units", "glob", "limit", "config"]),
    (
        "replay",
        &[
            "clock", "corpus", "units", "secret", "recipes", "head", "client", "request", "key", "limit", "list",
            "outcome", "route", "decision", "store", "record", "gateway", "config",
        ],
    ),
    (
        "app",
        &[
            "crowdsec",
            "units",
            "glob",
            "clock",
            "files",
            "http_client",
            "client",
            "request",
            "jwt",
            "list",
            "key",
            "limit",
            "outcome",
            "route",
            "decision",
            "store",
            "upstream",
            "listen",
            "record",
            "gateway",
            "fronts",
            "admin",
            "config",
            "turn",
        ],
    ),
    (
        "cli",
        &[
            "word",
            "units",
            "recipes",
            "glob",
            "clock",
            "files",
            "head",
            "http_client",
            "client",
            "request",
            "list",
            "key",
            "limit",
            "outcome",
            "route",
            "decision",
            "store",
            "upstream",
            "listen",
            "record",
            "gateway",
            "fronts",
            "api",
            "admin",
            "config",
            "convert",
            "replay",
            "app",
        ],
    ),
    (
        "fuzzing",
        &["crowdsec", "http1", "http2", "jwt", "request", "store", "upstream", "listen", "gateway", "config", "replay"],
    ),
];

/// Modules that only compute: what they need is an argument.
const PURE: &[&str] = &[
    "word",
    "units",
    "recipes",
    "base64",
    "glob",
    "regular_expression",
    "http1",
    "http2",
    "signing",
    "client",
    "request",
    "jwt",
    "list",
    "key",
    "challenge",
    "limit",
    "outcome",
    "route",
    "decision",
];

/// Words that give an effect away: waiting, the outside, a clock that is asked instead of given, randomness, and state that
/// changes behind a shared reference. `now()` also catches our own clock. `Arc`, and a `LazyLock` of a constant, are no
/// effects.
const EFFECTS: &[&str] = &[
    "async fn",
    ".await",
    "tokio::",
    "hyper::",
    "std::fs",
    "std::net::Tcp",
    "std::thread",
    "tracing::",
    "now()",
    "SystemTime",
    "Instant",
    "getrandom",
    "fastrand",
    "rand::",
    "RandomState",
    "ArcSwap",
    "arc_swap",
    "Atomic",
    "Mutex",
    "RwLock",
    "OnceLock",
    "OnceCell",
    "RefCell",
    "Cell<",
    "thread_local!",
];

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
fn imports_are_grouped_by_module_and_never_two_levels_up() {
    for source in sources() {
        let path = source.path.display();
        assert!(!source.text.contains("super::super"), "{path}: name the module from `crate::`");
        let mut seen = BTreeSet::new();
        for statement in use_statements(&source.text) {
            let is_flat = statement.names.iter().all(|name| !name.contains("::"));
            assert!(is_flat, "{path}: one `use` for each module, not for {}", statement.module);
            // What only some builds have stands alone, and so does what has no module: a crate, a macro.
            let is_alone = statement.introduction.starts_with('#') || statement.module.is_empty();
            let is_first = seen.insert((statement.scope, statement.introduction, statement.module.clone()));
            assert!(is_first || is_alone, "{path}: the names of {} are imported together", statement.module);
        }
    }
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
