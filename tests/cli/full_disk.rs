//! Output that cannot be written.

use std::fs::File;
use std::io;

use crate::support::Folder;

const LOG: &str = r#"198.51.100.7 - - [10/Oct/2024:13:55:36 +0000] "GET /login HTTP/1.1" 200 12 "-" "curl"
"#;

const CONFIG: &str = "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:8000\nroutes:\n  - match: {path: /login}\n    limits:\n      \
                      - {name: pace, key: client_ip, rate: 5/minute}\n";

/// The commands that print without a gateway.
const COMMANDS: &[&[&str]] = &[
    &["check"],
    &["check", "--format", "json"],
    &["explain", "/login"],
    &["explain", "--format", "json", "/login"],
    &["replay", "access.log"],
    &["replay", "--format", "json", "access.log"],
    &["suggest", "access.log"],
    &["convert", "ratelimit", "edge.yaml"],
    &["schema"],
    &["completions", "bash"],
    &["help"],
    &["help", "bans", "add"],
    &["--help"],
    &["run", "--help"],
    &["--version"],
];

fn folder() -> Folder {
    let folder = Folder::with(CONFIG);
    folder.write("access.log", LOG);
    folder.write(
        "edge.yaml",
        "domain: edge\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1}}]\n",
    );
    folder
}

#[test]
fn a_full_disk_is_an_error_that_is_said_in_one_line() {
    let folder = folder();
    for arguments in COMMANDS {
        let full = File::options().write(true).open("/dev/full").expect("a device that is always full");
        let ended = folder.run_onto(arguments, full);
        assert_eq!(ended.code, Some(1), "{arguments:?}: {ended:?}");
        let expected = "portcullis: cannot write to standard output: No space left on device";
        assert!(ended.stderr.starts_with(expected), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_none() {
    let folder = folder();
    for arguments in COMMANDS {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let ended = folder.run_onto(arguments, writer);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}
