//! Sessions in memory survive a takeover and a restart.

use crate::support::{Answer, Gateway, Origin, eventually};
use crate::takeover_counts::taken_over;

/// A gateway that has learned the session `first` of alice. A person may look at two pages an hour.
fn signed_in(top: &str) -> (Origin, Gateway) {
    let origin = Origin::answering(|received| match received.target.as_str() {
        "/login" => Answer::new(302, &[("Location", "/account"), ("Set-Cookie", "sid=first; Path=/")], ""),
        _ => Answer::ok("page"),
    });
    let gateway = Gateway::start(format!(
        "upstream: {}\n{top}\nroutes:\n  - match: POST /login\n    \
         outcome: {{success: {{status: 302, header: {{location: \"/account*\"}}}}}}\n    \
         sessions: {{of: param.username, cookies: [sid]}}\n  \
         - match: /page\n    limits:\n      - {{name: pages, key: user, rate: 2/hour, missing: skip}}\n",
        origin.url()
    ));
    assert_eq!(gateway.post("/login").form("username=alice&password=right").status(), 302);
    (origin, gateway)
}

fn page(gateway: &Gateway) -> u16 {
    gateway.get("/page").header("Cookie", "sid=first").status()
}

#[test]
fn sessions_and_what_was_counted_for_them_go_to_the_process_that_takes_over() {
    let (_origin, first) = signed_in("");
    assert_eq!(page(&first), 200);
    let second = taken_over(&first);
    let third = taken_over(&second);
    assert_eq!([page(&third), page(&third)], [200, 429]);
}

#[test]
fn sessions_outlive_a_process_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let (_origin, mut gateway) = signed_in(&format!("store: {{memory: {{snapshot: {}}}}}", path.display()));
    // A state without a session has 136 bytes.
    eventually("it is written", || std::fs::metadata(&path).is_ok_and(|file| file.len() > 160));
    gateway.kill();
    gateway.restart();
    assert_eq!([page(&gateway), page(&gateway), page(&gateway)], [200, 200, 429]);
}
