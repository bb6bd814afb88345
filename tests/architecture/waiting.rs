//! Tests wait for events. `tests/support` has the loops: `eventually`, `until`, `throughout`, `repeat_until` and others.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Which files of tests sleep all the same, how often, and why an event cannot take its place.
const SLEEPS: &[(&str, &[(&str, usize)])] = &[
    (
        "the promise is a span: what holds before it is over, and what after it",
        &[
            ("tests/gateway/limits.rs", 1),
            ("tests/gateway/pipelined.rs", 1),
            ("tests/gateway/timeouts.rs", 2),
            ("tests/gateway/upgrade.rs", 1),
            ("tests/gateway/websocket_http2_ends.rs", 1),
            ("tests/store/sessions.rs", 6),
            ("src/listen/tests/http2.rs", 2),
            ("src/store/redis/scripts/tests/edges.rs", 1),
            ("src/store/redis/transport/pipeline/tests.rs", 1),
            ("src/upstream/tests/health.rs", 2),
        ],
    ),
    (
        "what is spent within a span is counted or measured",
        &[
            ("tests/gateway/descriptors.rs", 2),
            ("tests/gateway/held_many.rs", 1),
            ("tests/gateway/http2_memory.rs", 1),
            ("tests/gateway/memory.rs", 1),
            ("tests/gateway/names_many.rs", 2),
            ("tests/gateway/takeover_many.rs", 3),
            ("tests/fleet/network_faults.rs", 3),
            ("tests/redis/measure.rs", 1),
            ("tests/redis/steady.rs", 4),
            ("tests/shared/at_rest.rs", 2),
            ("tests/shared/bans.rs", 3),
            ("tests/shared/flood.rs", 1),
            ("tests/story/night.rs", 1),
            ("src/store/handover/tests/measurements.rs", 2),
        ],
    ),
    (
        "a client, an application or a process is slow, or pauses between requests, on purpose",
        &[
            ("tests/envoy/hanging.rs", 1),
            ("tests/fleet/site.rs", 2),
            ("tests/gateway/body_rate.rs", 2),
            ("tests/gateway/http2_origin.rs", 2),
            ("tests/gateway/names_kept.rs", 1),
            ("tests/gateway/replay.rs", 2),
            ("tests/gateway/unix_sockets.rs", 1),
            ("tests/shared/busy.rs", 1),
            ("tests/shared/exact.rs", 1),
            ("tests/shared/leases.rs", 2),
            ("tests/shared/outage.rs", 3),
            ("tests/shared/outcomes.rs", 1),
            ("tests/story/night.rs", 1),
            ("tests/store/leases.rs", 1),
            ("src/listen/tests/http2.rs", 2),
            ("src/store/redis/transport/pipeline/tests.rs", 3),
            ("src/upstream/tests/bodies.rs", 5),
            ("src/upstream/tests/bursts.rs", 2),
        ],
    ),
    (
        "traffic goes on for a while before, during or after a fault, and is sampled meanwhile",
        &[("tests/shared/exact.rs", 1), ("tests/shared/outage.rs", 3)],
    ),
    (
        "nothing outside tells of what happens within the gateway or its neighbour meanwhile",
        &[
            ("tests/envoy/authorization.rs", 1),
            ("tests/gateway/tls_resting.rs", 1),
            ("src/listen/tests/drain.rs", 2),
            ("src/upstream/tests/failures.rs", 1),
        ],
    ),
    (
        "the loop of a helper that waits for an event, where `tests/support` is not at hand",
        &[
            ("tests/redis/reach.rs", 1),
            ("src/listen/tests/mod.rs", 1),
            ("src/record/line/tests.rs", 1),
            ("src/upstream/tests/mod.rs", 1),
        ],
    ),
];

#[test]
fn tests_wait_for_events_and_not_for_a_time_that_is_usually_enough() {
    let mut allowed: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, count) in SLEEPS.iter().flat_map(|(_, files)| *files) {
        *allowed.entry(file).or_default() += count;
    }
    let files = files_of_tests();
    for (file, text) in &files {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let count: usize = code.map(|line| line.matches("sleep(").count()).sum();
        let most = allowed.get(file.as_str()).copied().unwrap_or_default();
        assert_eq!(count, most, "{file}: wait for an event with a helper of tests/support, or say here why it sleeps");
    }
    for file in allowed.keys() {
        assert!(files.contains_key(*file), "{file} is not there any more");
    }
}

/// The test programs without what they share, and the files of unit tests, each with its text.
fn files_of_tests() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    let mut folders = vec![root.join("src"), root.join("tests")];
    while let Some(folder) = folders.pop() {
        let paths = fs::read_dir(folder).expect("a folder of the sources").map(|entry| entry.expect("an entry").path());
        let (below, files): (Vec<PathBuf>, Vec<PathBuf>) = paths.partition(|path| path.is_dir());
        folders.extend(below);
        for path in files {
            let name = path.strip_prefix(root).expect("found below it").to_string_lossy().into_owned();
            let shared = ["tests/support/", "tests/architecture/"].iter().any(|folder| name.starts_with(folder));
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            if is_source && (name.contains("tests/") || name.ends_with("/tests.rs")) && !shared {
                found.insert(name, fs::read_to_string(&path).expect("a file of the sources"));
            }
        }
    }
    found
}
