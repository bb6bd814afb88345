//! `portcullis bans` against a gateway that runs.

use crate::command::Ended;
use crate::command::Folder;
use crate::command::nobody;
use crate::support::Gateway;

const CONFIG: &str = "\
admin: {address: 127.0.0.1:0, token_file: token}
upstream: http://127.0.0.1:1
routes:
  - match: POST /login
    limits: [{name: login guesses, key: param.username, rate: 5/hour}]
";

fn start() -> Gateway {
    Gateway::with_files(CONFIG, &[("token", "s3cret\n")])
}

fn bans(gateway: &Gateway, arguments: &[&str]) -> Ended {
    let admin = format!("http://{}", gateway.admin());
    let arguments = [&["bans"], arguments, &["--admin", &admin]].concat();
    Folder::empty().run_in(&arguments, &[("PORTCULLIS_TOKEN", "s3cret")])
}

#[test]
fn an_address_is_banned_listed_exported_and_freed() {
    let gateway = start();
    assert_eq!(bans(&gateway, &["list"]).stdout, "nobody is banned\n");
    let ended = bans(&gateway, &["add", "127.0.0.1", "--for", "1h", "--reason", "scans"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("127.0.0.1/32 is banned until 20"), "{ended:?}");
    assert_eq!(gateway.get("/").status(), 403);

    let listed = bans(&gateway, &["list", "--format", "json"]).json();
    let id = listed[0]["id"].as_str().expect("an id").to_owned();
    let table = bans(&gateway, &["list"]).stdout;
    assert!(table.starts_with("ID ") && table.contains(&id) && table.ends_with(" scans\n"), "{table}");
    let exported = |arguments: &[&str]| bans(&gateway, &[&["export"], arguments].concat()).stdout;
    assert_eq!(exported(&[]), "127.0.0.1\n");
    assert_eq!(exported(&["--format", "hosts.deny"]), "ALL: 127.0.0.1\n");

    let ended = bans(&gateway, &["remove", &id]);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{id}: the ban is lifted\n")));
    assert_eq!(gateway.get("/").status(), 502);
    let ended = bans(&gateway, &["remove", &id]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("there is no ban of that id"), "{ended:?}");
}

#[test]
fn a_key_is_banned_under_its_limit_and_told_to_whoever_may_lift_it() {
    let gateway = start();
    let ended = bans(&gateway, &["add", "--limit", "login guesses", "param.username=alice", "--for", "30m"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("login guesses: param.username=alice is banned until "), "{ended:?}");
    assert_eq!(gateway.post("/login").form("username=Alice").status(), 429);
    assert_eq!(gateway.post("/login").form("username=bob").status(), 502);
    assert!(bans(&gateway, &["list", "--format", "json"]).stdout.contains("alice"));
}

#[test]
fn what_is_wrong_is_said_and_usage_and_reach_have_codes_of_their_own() {
    let gateway = start();
    let wrong = |arguments: &[&str], code: i32, said: &str| {
        let ended = bans(&gateway, arguments);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
        assert_eq!(ended.stdout, "");
    };
    wrong(&["add", "localhost", "--for", "1h"], 1, "not an address");
    wrong(&["add", "127.0.0.1", "127.0.0.2", "--for", "1h"], 1, "one address at a time");
    wrong(&["add", "--limit", "login guess", "param.username=a", "--for", "1h"], 1, "did you mean `login guesses`?");
    wrong(&["add", "--limit", "login guesses", "127.0.0.1", "--for", "1h"], 1, "SELECTOR=VALUE");
    wrong(&["remove", "none"], 1, "there is no ban of that id");
    wrong(&["add", "127.0.0.1"], 2, "--for");
    wrong(&["add", "127.0.0.1", "--for", "soon"], 2, "duration");
    wrong(&["add", "--for", "1h"], 2, "required");
    wrong(&["export", "--format", "fail2ban"], 2, "nginx");
    let ended = Folder::empty().run_in(&["bans", "list"], &[("PORTCULLIS_ADMIN", &format!("http://{}", nobody()))]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
}
