//! `portcullis run`: how it starts, reloads and ends.

use std::net::TcpListener;

use crate::support::{Folder, Gateway};

#[test]
fn an_admin_address_in_use_is_the_same() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = format!("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nadmin: {{address: \"{address}\"}}\n");
    let ended = Folder::with(&config).run(&["run"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&address.to_string()), "{ended:?}");
}

#[test]
fn a_bad_file_is_told_as_check_tells_it() {
    let folder = Folder::with("listen: 127.0.0.1:0\nupstram: http://127.0.0.1:1\n");
    let (run, check) = (folder.run(&["run"]), folder.run(&["check"]));
    assert_eq!((run.code, check.code), (Some(1), Some(1)));
    assert_eq!((&*run.stdout, &run.stderr), ("", &check.stdout));
}

#[test]
fn without_a_file_the_first_steps_are_shown() {
    let ended = Folder::empty().run(&["run"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("portcullis demo") && ended.stderr.contains("--upstream"), "{ended:?}");
}

#[test]
fn flags_that_mean_nothing_are_wrong_input() {
    let ended =
        Folder::empty().run(&["run", "--upstream", "http://127.0.0.1:1", "--limit", "POST /login client_ip often"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("--limit"), "{ended:?}");
}

#[test]
fn a_reload_that_cannot_listen_changes_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let gateway = Gateway::start(limited(1));
    let address = taken.local_addr().unwrap();
    gateway.reload(format!("listen: [127.0.0.1:0, \"{address}\"]\nupstream: http://127.0.0.1:1\n"));
    assert_eq!(gateway.failed_reloads(), 1);
    assert_eq!(gateway.get("/").send().status, 502);
    assert_eq!(gateway.get("/").send().status, 429);
}

#[test]
fn sighup_reloads_and_sigterm_ends_with_success() {
    let mut gateway = Gateway::start(limited(1));
    gateway.reload(limited(2));
    gateway.signal("TERM");
    assert_eq!(gateway.ended().code(), Some(0));
}

#[test]
fn every_request_is_in_the_log_when_the_process_has_ended() {
    let mut gateway = Gateway::start(limited(1000));
    for number in 0..50 {
        gateway.get(&format!("/{number}")).send();
    }
    gateway.signal("INT");
    assert_eq!(gateway.ended().code(), Some(0));
    assert_eq!(gateway.stdout().len(), 50);
}

fn limited(count: u32) -> String {
    format!("upstream: http://127.0.0.1:1\nlimits: [{{name: all, key: client_ip, rate: {count}/hour}}]\n")
}
