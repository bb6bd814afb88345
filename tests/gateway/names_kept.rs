//! Known clients outlive processes that are killed, however much of the last change is on disk.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use crate::support::{Answer, Gateway, Origin, eventually};
use crate::takeover_counts::taken_over;

/// A gateway with a snapshot, in front of an application that lets in whoever does not say that the password is wrong.
fn guarded() -> (Origin, Gateway) {
    let origin = Origin::answering(|received| {
        if received.target.contains("wrong") {
            Answer::new(403, &[], "")
        } else {
            Answer::new(302, &[("Location", "/account")], "")
        }
    });
    let gateway = Gateway::start(format!(
        "upstream: {}\nlog: {{requests: false}}\nstore: {{memory: {{snapshot: state}}}}\nroutes:\n  \
         - match: POST /login\n    \
         outcome: {{success: {{status: 302, header: {{location: \"/account*\"}}}}}}\n    \
         known_clients: {{of: param.username, remember: 5, for: 90d}}\n    \
         limits: [{{name: guesses, key: param.username, rate: 1/hour, unless: [known_client]}}]\n",
        origin.url()
    ));
    (origin, gateway)
}

fn sign_in(gateway: &Gateway, name: &str) {
    assert_eq!(gateway.post(&format!("/login?username={name}")).status(), 302);
}

/// Whether we are a known client: a stranger has one guess. It is asked once of each process.
fn is_known(gateway: &Gateway, name: &str) -> bool {
    let guess = || gateway.post(&format!("/login?username={name}&wrong")).status();
    let seen = [guess(), guess()];
    assert!(matches!(seen, [403, 403 | 429]), "{seen:?}");
    seen == [403, 403]
}

/// Which file it is, and its length.
type Seen = (u64, u64);

fn seen(gateway: &Gateway) -> Seen {
    fs::metadata(state(gateway)).map_or((0, 0), |file| (file.ino(), file.len()))
}

fn state(gateway: &Gateway) -> PathBuf {
    gateway.path("state")
}

/// Waits until a process that has just begun has begun its file.
fn begun(gateway: &Gateway, before: Seen) -> Seen {
    eventually("the file is begun", || seen(gateway).0 != before.0);
    seen(gateway)
}

/// Waits until a change is on disk.
fn appended(gateway: &Gateway, before: Seen) -> Seen {
    eventually("it is written", || seen(gateway) != before);
    let after = seen(gateway);
    assert_eq!(after.0, before.0, "the same file");
    assert!(after.1 > before.1, "{before:?} {after:?}");
    after
}

#[test]
fn names_outlive_processes_that_are_killed() {
    let (_origin, mut gateway) = guarded();
    let (mut names, mut before) = (Vec::new(), (0, 0));
    for round in 0..4 {
        before = begun(&gateway, before);
        assert!(names.iter().all(|name: &String| is_known(&gateway, name)), "{round}");
        assert!(!is_known(&gateway, &format!("stranger-{round}")));
        for name in ["alice", "bob"].map(|name| format!("{name}-{round}")) {
            sign_in(&gateway, &name);
            before = appended(&gateway, before);
            names.push(name);
        }
        gateway.restart();
    }
    assert!(!gateway.log_messages().iter().any(|line| line.contains("cut off") || line.contains("damaged")));
}

#[test]
fn a_change_that_is_not_whole_on_disk_is_cut_off_and_told() {
    let (_origin, mut gateway) = guarded();
    let before = begun(&gateway, (0, 0));
    sign_in(&gateway, "alice");
    let first = appended(&gateway, before);
    sign_in(&gateway, "bob");
    appended(&gateway, first);
    gateway.kill();
    let whole = fs::read(state(&gateway)).expect("it is there");
    fs::write(state(&gateway), &whole[..whole.len() - 3]).expect("it is cut");
    gateway.restart();
    assert_eq!(["alice", "bob"].map(|name| is_known(&gateway, name)), [true, false]);
    let told = gateway.log_messages();
    assert!(told.iter().any(|line| line.contains("were not written whole") && line.contains("cut off")), "{told:?}");
    // What this process writes is whole.
    let before = begun(&gateway, first);
    sign_in(&gateway, "carol");
    appended(&gateway, before);
    gateway.restart();
    assert_eq!(["alice", "bob", "carol"].map(|name| is_known(&gateway, name)), [true, false, true]);
    assert!(!gateway.log_messages().iter().any(|line| line.contains("cut off")));
}

#[test]
fn damage_in_the_middle_is_told_and_costs_what_was_there() {
    let (_origin, mut gateway) = guarded();
    let mut ends = vec![begun(&gateway, (0, 0))];
    for name in ["alice", "bob", "carol"] {
        sign_in(&gateway, name);
        ends.push(appended(&gateway, ends[ends.len() - 1]));
    }
    gateway.kill();
    let mut damaged = fs::read(state(&gateway)).expect("it is there");
    damaged[usize::try_from(ends[2].1).expect("short") - 1] ^= 1;
    fs::write(state(&gateway), &damaged).expect("it is written");
    gateway.restart();
    assert_eq!(["alice", "bob", "carol"].map(|name| is_known(&gateway, name)), [true, false, true]);
    let told = gateway.log_messages();
    assert!(told.iter().any(|line| line.contains("is damaged") && line.contains("state.damaged")), "{told:?}");
    assert_eq!(fs::read(gateway.path("state.damaged")).expect("it is kept"), damaged);
}

/// Whoever was let in is known, up to some moment shortly before the process was killed.
#[test]
fn a_process_that_is_killed_at_any_moment_loses_the_last_names_at_most() {
    let (_origin, mut gateway) = guarded();
    let mut before = (0, 0);
    for round in 0..4_u32 {
        let name = |number: u32| format!("name-{round}-{number}");
        let mut signed_in = 0;
        let on_disk = begun(&gateway, before);
        // At least one is on disk, and others come while it is written.
        while signed_in < 60 || seen(&gateway) == on_disk {
            sign_in(&gateway, &name(signed_in));
            signed_in += 1;
            thread::sleep(Duration::from_millis(11 + u64::from(round)));
        }
        before = seen(&gateway);
        gateway.restart();
        let known: Vec<bool> = (0..signed_in).map(|number| is_known(&gateway, &name(number))).collect();
        let first_lost = known.iter().position(|known| !known).unwrap_or(known.len());
        assert!(first_lost > 0 && !known[first_lost..].contains(&true), "{known:?}");
    }
}

#[test]
fn a_process_that_takes_over_begins_a_file_of_its_own() {
    let (_origin, mut first) = guarded();
    let before = begun(&first, (0, 0));
    sign_in(&first, "alice");
    let before = appended(&first, before);
    let mut second = taken_over(&first);
    first.ended();
    let before = begun(&second, before);
    sign_in(&second, "bob");
    // Perhaps in one more file, with the last that the other process has sent.
    eventually("it is written", || seen(&second) != before);
    second.restart();
    assert_eq!(["alice", "bob"].map(|name| is_known(&second, name)), [true, true]);
}

#[test]
fn a_process_whose_successor_fails_goes_on_with_a_file_of_its_own() {
    let (_origin, mut gateway) = guarded();
    let before = begun(&gateway, (0, 0));
    sign_in(&gateway, "alice");
    let before = appended(&gateway, before);
    let config = fs::read_to_string(gateway.path("portcullis.yaml")).expect("it is there");
    // It fails after it got the state of the other.
    gateway.write("portcullis.yaml", &format!("{config}audit: {{file: absent/audit.jsonl}}\n"));
    let (status, told) = gateway.failing_successor();
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(told.contains("absent/audit.jsonl"), "{told}");
    gateway.write("portcullis.yaml", &config);
    let before = begun(&gateway, before);
    sign_in(&gateway, "bob");
    appended(&gateway, before);
    gateway.restart();
    assert_eq!(["alice", "bob"].map(|name| is_known(&gateway, name)), [true, true]);
}
