//! `portcullis why` and `portcullis top` against a running gateway.

use crate::support::{Folder, Gateway, unused_address};

const CONFIG: &str = "\
admin: {address: 127.0.0.1:0, token_file: token}
upstream: http://127.0.0.1:1
routes:
  - {name: login, match: /login, limits: [{name: pace, key: client_ip, rate: 1/hour}]}
";

#[test]
fn why_tells_the_story_of_one_denial() {
    let gateway = Gateway::with_token(CONFIG);
    gateway.get("/login").send();
    let denied = gateway.get("/login").send();
    let id = denied.header("x-request-id").expect("an id");
    let ended = gateway.run(&["why", id]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("Denied at ") && !ended.stdout.contains('\u{1b}'), "{ended:?}");
    assert!(ended.stdout.contains("the limit pace allows 1 request an hour for 127.0.0.1"), "{ended:?}");
    assert!(ended.stdout.contains("\nroute    login\n"), "{ended:?}");
    assert_eq!(gateway.run(&["why", id, "--format", "json"]).json()["limit"], "pace");

    let ended = gateway.run(&["why", "unknown/id"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("no request of that id was denied or held"), "{ended:?}");
}

#[test]
fn why_names_the_lists_of_a_route_that_lets_only_their_members_in() {
    let gateway = Gateway::with_token(
        "\
admin: {address: 127.0.0.1:0, token_file: token}
upstream: http://127.0.0.1:1
lists: {office: {addresses: [192.0.2.0/24]}, vpn: {addresses: [198.51.100.0/24]}}
routes:
  - {name: staff, match: /staff/*, only: [office, vpn]}
",
    );
    let denied = gateway.get("/staff/plans").send();
    let ended = gateway.run(&["why", denied.header("x-request-id").expect("an id")]);
    let why = "the route staff lets only members of the lists office and vpn in, and 127.0.0.1 is on none.";
    assert!(denied.status == 403 && ended.stdout.contains(why), "{ended:?}");
}

#[test]
fn top_shows_who_asks_most() {
    let gateway = Gateway::with_token(CONFIG);
    for _ in 0..4 {
        gateway.get("/login").send();
    }
    let ended = gateway.run(&["top"]);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("CLIENT     DENIED  FAILED  REQUESTS  FIRST"), "{ended:?}");
    assert!(lines[1].starts_with("127.0.0.1  3       0       4         2"), "{ended:?}");
    let ended = gateway.run(&["top", "pace", "--by", "requests", "-n", "1", "--minutes", "60", "--format", "json"]);
    assert_eq!(ended.json()[0]["key"]["client_ip"], "127.0.0.1", "{ended:?}");
    let ended = gateway.run(&["top", "pase"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("did you mean `pace`?"), "{ended:?}");
    assert_eq!(gateway.run(&["top", "--by", "names"]).code, Some(2));
    let nobody = format!("http://{}", unused_address());
    assert_eq!(Folder::empty().run(&["top", "--admin", &nobody]).code, Some(3));
}
