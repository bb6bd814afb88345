//! `portcullis bans` against a running gateway.

use crate::support::{Ended, Folder, Gateway, RedisServer, eventually, unused_address};

const CONFIG: &str = "\
admin: {address: 127.0.0.1:0, token_file: token}
upstream: http://127.0.0.1:1
routes:
  - match: POST /login
    limits: [{name: login guesses, key: param.username, rate: 5/hour}]
";

fn bans(gateway: &Gateway, arguments: &[&str]) -> Ended {
    gateway.run(&[&["bans"], arguments].concat())
}

#[test]
fn an_address_is_banned_listed_exported_and_freed() {
    let gateway = Gateway::with_token(CONFIG);
    assert_eq!(bans(&gateway, &["list"]).stdout, "no bans\n");
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
fn a_ban_of_a_limit_that_was_removed_is_shown_as_enforced_no_longer() {
    let gateway = Gateway::with_token(CONFIG);
    assert_eq!(bans(&gateway, &["add", "--limit", "login guesses", "param.username=bob", "--for", "1h"]).code, Some(0));
    let listed = || bans(&gateway, &["list"]).stdout;
    assert!(!listed().contains("1 of 1"), "{}", listed());
    gateway.reload(CONFIG.replace("login guesses", "login tries"));
    assert!(
        listed().ends_with("\n1 of 1: this gateway has no such limit by now, and denies nobody by the ban\n"),
        "{}",
        listed()
    );
    assert_eq!(bans(&gateway, &["list", "--format", "json"]).json()[0]["unenforced"], true);
}

#[test]
fn many_addresses_are_banned_in_one_call_all_or_none() {
    let gateway = Gateway::with_token(CONFIG);
    let add =
        |what: &[&str], input: &str| gateway.run_with_input(&[&["bans", "add", "--for", "1h"], what].concat(), input);
    let banned = || bans(&gateway, &["export"]).stdout;

    let ended = add(&["198.51.100.7", "localhost", "127.0.0.1"], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains("localhost"), "{ended:?}");
    assert_eq!(add(&["-", "203.0.113.9"], "192.0.2.1\n10.0.0.0/7\n").code, Some(1));
    assert_eq!(banned(), "", "none of the others");
    assert_eq!(gateway.get("/").status(), 502);

    let ended = add(
        &["127.0.0.1", "-", "2001:db8::/48"],
        "# scanners\n198.51.100.7, 198.51.100.7/32 # twice\r\n\n192.0.2.0/24\n",
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.matches(" is banned until 20").count(), 4, "{ended:?}");
    assert_eq!(banned(), "127.0.0.1\n192.0.2.0/24\n198.51.100.7\n2001:db8::/48\n");
    assert_eq!(gateway.get("/").status(), 403);

    let many = |count: u32| (0..count).map(|n| format!("10.{}.{}.1", n / 200, n % 200)).collect::<Vec<_>>().join("\n");
    let ended = add(&["-"], &many(10_001));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("10000"), "{ended:?}");
    assert_eq!(add(&["-"], &many(10_000)).code, Some(0));
    assert_eq!(banned().lines().count(), 10_004);
}

#[test]
fn a_key_is_banned_under_its_limit_and_told_to_whoever_may_lift_it() {
    let gateway = Gateway::with_token(CONFIG);
    let ended = bans(&gateway, &["add", "--limit", "login guesses", "param.username=alice", "--for", "30m"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("login guesses: param.username=alice is banned until "), "{ended:?}");
    assert_eq!(gateway.post("/login").form("username=Alice").status(), 429);
    assert_eq!(gateway.post("/login").form("username=bob").status(), 502);
    assert!(bans(&gateway, &["list", "--format", "json"]).stdout.contains("alice"));
}

#[test]
fn a_ban_is_lifted_by_its_address_by_its_key_or_with_all_others() {
    let gateway = Gateway::with_token(CONFIG);
    let add = |what: &[&str]| assert_eq!(bans(&gateway, &[&["add", "--for", "1h"], what].concat()).code, Some(0));
    let remove = |what: &[&str]| bans(&gateway, &[&["remove"], what].concat());
    let alice = ["--limit", "login guesses", "param.username=alice"];
    add(&["127.0.0.1"]);
    add(&["127.0.0.0/24"]);
    add(&alice);
    let ended = remove(&["127.0.0.1"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told: Vec<_> = ended.stdout.lines().map(|line| line.split_once(": ").expect("an id").1).collect();
    assert_eq!(told, ["the ban of 127.0.0.1/32 is lifted", "still banned, as part of 127.0.0.0/24"]);
    let ended = remove(&["127.0.0.1"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("banned as part of 127.0.0.0/24"), "{ended:?}");
    assert_eq!(remove(&["127.0.0.0/24"]).code, Some(0));

    assert_eq!(gateway.post("/login").form("username=Alice").status(), 429);
    let ended = remove(&["--limit", "login guesses", "param.username= ALICE", "--format", "json"]);
    assert_eq!(ended.json()["lifted"][0]["key"], serde_json::json!({"param.username": "alice"}), "{ended:?}");
    assert_eq!(gateway.post("/login").form("username=Alice").status(), 502);

    add(&["203.0.113.0/24"]);
    add(&alice);
    assert_eq!(remove(&["--all"]).stdout.lines().count(), 2);
    assert_eq!(bans(&gateway, &["list"]).stdout, "no bans\n");
    let ended = remove(&["--all"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "no bans\n"));
}

#[test]
fn a_network_as_large_as_a_country_is_banned_only_when_it_is_meant() {
    let gateway = Gateway::with_token(CONFIG);
    let add = |network: &str, more: &[&str]| bans(&gateway, &[&["add", network, "--for", "1h"], more].concat());
    for (network, enough) in
        [("126.0.0.0/7", "/8"), ("0.0.0.0/1", "/8"), ("2000::/15", "/16"), ("::ffff:126.0.0.0/103", "/8")]
    {
        let ended = add(network, &[]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("--force") && ended.stderr.contains(enough), "{ended:?}");
    }
    for network in ["0.0.0.0/0", "::/0", "::ffff:0:0/96"] {
        let ended = add(network, &["--force"]);
        assert!(ended.code == Some(1) && ended.stderr.contains("everyone"), "{ended:?}");
    }
    assert_eq!(bans(&gateway, &["list"]).stdout, "no bans\n");
    for network in ["10.0.0.0/8", "2001::/16"] {
        assert_eq!(add(network, &[]).code, Some(0));
    }
    for network in ["126.0.0.0/7", "2000::/15"] {
        assert_eq!(add(network, &["--force"]).code, Some(0));
    }
    assert_eq!(gateway.get("/").status(), 403);
}

#[test]
fn what_is_wrong_is_said_and_usage_and_reach_have_codes_of_their_own() {
    let gateway = Gateway::with_token(CONFIG);
    let wrong = |arguments: &[&str], code: i32, said: &str| {
        let ended = bans(&gateway, arguments);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
        assert_eq!(ended.stdout, "");
    };
    wrong(&["add", "localhost", "--for", "1h"], 1, "not an address");
    wrong(&["add", "-", "--for", "1h"], 1, "standard input has no address");
    wrong(&["add", "--limit", "login guess", "param.username=a", "--for", "1h"], 1, "did you mean `login guesses`?");
    wrong(&["add", "--limit", "login guesses", "127.0.0.1", "--for", "1h"], 1, "SELECTOR=VALUE");
    wrong(&["remove", "--limit", "login guesses", "param.username=bob"], 1, "this key of login guesses is not banned");
    wrong(&["remove", "--limit", "login guess", "param.username=bob"], 1, "did you mean `login guesses`?");
    wrong(&["remove", "--limit", "login guesses", "bob"], 1, "SELECTOR=VALUE");
    wrong(&["remove", "198.51.100.7"], 1, "198.51.100.7 is not banned");
    wrong(&["remove", "198.51.100.7", "198.51.100.8"], 1, "one at a time");
    wrong(&["remove"], 2, "required");
    wrong(&["remove", "--all", "198.51.100.7"], 2, "cannot be used with");
    wrong(&["remove", "none"], 1, "there is no ban of that id");
    wrong(&["add", "127.0.0.1"], 2, "--for");
    wrong(&["add", "127.0.0.1", "--for", "soon"], 2, "duration");
    wrong(&["add", "--for", "1h"], 2, "required");
    wrong(&["export", "--format", "fail2ban"], 2, "nginx");
    let ended =
        Folder::empty().run_in(&["bans", "list"], &[("PORTCULLIS_ADMIN", &format!("http://{}", unused_address()))]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
}

#[test]
fn while_redis_is_away_it_is_said_who_knows_a_ban_and_what_stays_in_force() {
    let mut redis = RedisServer::start();
    let gateway = Gateway::with_token(format!(
        "admin: {{address: 127.0.0.1:0, token_file: token}}\nupstream: http://127.0.0.1:1\n\
         store: {{redis: {{url: \"{}\", timeout: 10s}}}}\nlimits: [{{name: pace, key: client_ip, rate: 5/hour}}]\n",
        redis.url()
    ));
    let add = |address: &str| bans(&gateway, &["add", address, "--for", "1h"]);
    eventually("redis has it", || !add("198.51.100.1").stdout.contains("only this gateway"));
    redis.kill();
    let ended = add("198.51.100.2");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("only this gateway knows it: Redis does not answer"), "{ended:?}");
    let listed = bans(&gateway, &["list"]).stdout;
    assert!(listed.contains("1 of 2: only this gateway knows it"), "{listed}");

    // The ban that only this gateway has is lifted. The other one would come back with Redis.
    let ended = bans(&gateway, &["remove", "198.51.100.2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = bans(&gateway, &["remove", "198.51.100.1"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the ban stays in force until it is back and you lift it again"), "{ended:?}");
    let ended = bans(&gateway, &["remove", "198.51.100.9"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("a ban that only Redis has stays in force"), "{ended:?}");
    assert_eq!(add("198.51.100.3").code, Some(0));
    let ended = bans(&gateway, &["remove", "--all"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("one that only this gateway knew is lifted"), "{ended:?}");

    redis.restart();
    eventually("redis is back", || bans(&gateway, &["remove", "--all"]).code == Some(0));
    assert_eq!(bans(&gateway, &["list"]).stdout, "no bans\n");
}
