//! `portcullis limits` against a running gateway.

use crate::support::{Ended, Folder, Gateway, unused_address};

const CONFIG: &str = "\
admin: {address: 127.0.0.1:0, token_file: token}
upstream: http://127.0.0.1:1
lists: {office: {addresses: [198.51.100.0/24]}}
notify: {ops: {webhook: http://127.0.0.1:1/hook}}
limits:
  - {name: per-client, key: client_ip, rate: 2/hour; 10/day}
routes:
  - name: login
    match: POST /login
    limits:
      - {name: login guesses, key: [client_ip, param.username], rate: 5/hour, algorithm: token-bucket, burst: 2, shadow: true}
      - {name: flight, key: [], concurrent: 3, then: {deny: {status: 403}}}
      - {name: knocks, key: [client_ip, header.x-key], rate: 9/hour, unless: [office], then: {ban: [15m, 1h], notify: [ops]}}
";

fn limits(gateway: &Gateway, arguments: &[&str]) -> Ended {
    gateway.run(&[&["limits"], arguments].concat())
}

#[test]
fn every_limit_is_listed_with_what_it_counts_and_where() {
    let gateway = Gateway::with_token(CONFIG);
    let ended = limits(&gateway, &["list"]);
    let expected = "\
NAME           RULE            KEY                        WHERE          THEN                     MORE
per-client     2/hour; 10/day  client_ip                  every request  deny
login guesses  5/hour          client_ip, param.username  login          deny                     shadow, token-bucket, burst 2
flight         3 in flight     one for all                login          deny 403
knocks         9/hour          client_ip, header.x-key    login          ban 15m, 1h, notify ops  unless office
";
    assert_eq!((ended.code, &*ended.stdout), (Some(0), expected), "{ended:?}");
    let json = limits(&gateway, &["list", "--format", "json"]).json();
    assert_eq!(json[1]["key"], serde_json::json!(["client_ip", "param.username"]));
}

#[test]
fn a_key_is_shown_as_requests_left_it_and_reset() {
    let gateway = Gateway::with_token(CONFIG);
    let show = |source: &str| limits(&gateway, &["show", "per-client", &format!("client_ip={source}")]);
    gateway.get("/").send();
    let ended = show("127.0.0.1");
    let told: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(told[..2], ["per-client by client_ip: passes", "RATE    REMAINING  MORE IN"], "{ended:?}");
    assert!(told[2].starts_with("2/hour  1          ") && told[3].starts_with("10/day  9          "), "{ended:?}");
    gateway.get("/").send();
    assert!(show("127.0.0.1").stdout.starts_with("per-client by client_ip: denied for another "));
    assert!(show("127.0.0.2").stdout.starts_with("per-client by client_ip: passes"));
    assert_eq!(gateway.get("/").status(), 429);

    let ended = limits(&gateway, &["reset", "per-client", "client_ip=127.0.0.1"]);
    let said = "per-client: the counters of this key are reset\n";
    assert_eq!((ended.code, &*ended.stdout), (Some(0), said), "{ended:?}");
    assert_eq!(gateway.get("/").status(), 502);
    let json = limits(&gateway, &["reset", "per-client", "client_ip=127.0.0.1", "--format", "json"]).json();
    assert_eq!(json, serde_json::json!({"limit": "per-client", "reset": true}));
}

#[test]
fn a_key_that_is_banned_is_shown_with_its_ban() {
    let gateway = Gateway::with_token(CONFIG);
    let bans = |arguments: &[&str]| gateway.run(&[&["bans"], arguments].concat());
    let key = ["client_ip=127.0.0.1", "header.x-key=k"];
    let show = |more: &[&str]| limits(&gateway, &[&["show", "knocks"], &key[..], more].concat());
    assert!(show(&[]).stdout.starts_with("knocks by client_ip, header.x-key: passes\n"));
    assert_eq!(show(&["--format", "json"]).json()["ban"], serde_json::Value::Null);

    let add = [&["add", "--limit", "knocks", "--for", "1h", "--reason", "called in"], &key[..]].concat();
    assert_eq!(bans(&add).code, Some(0));
    let json = show(&["--format", "json"]).json();
    let (ban, left) = (&json["ban"], json["ban"]["left"].as_u64());
    assert!(left.is_some_and(|left| (3590..=3600).contains(&left)), "{json}");
    assert_eq!(
        (&json["allowed"], &json["retry_after"], &ban["reason"]),
        (&false.into(), &ban["left"], &"called in".into())
    );
    let (until, id) = (ban["until"].as_str().expect("a moment"), ban["id"].as_str().expect("an id"));
    let told = show(&[]).stdout;
    assert!(told.starts_with("knocks by client_ip, header.x-key: banned for another 3"), "{told}");
    assert!(told.contains(&format!(" s, until {until} (ban {id}, called in)\n")), "{told}");

    // The longest ban is shown; that of the address holds for every key with it.
    assert_eq!(bans(&["add", "127.0.0.0/8", "--for", "2h"]).code, Some(0));
    let told = show(&[]).stdout;
    assert!(told.starts_with("knocks by client_ip, header.x-key: banned as 127.0.0.0/8 for another 7"), "{told}");
    let others = limits(&gateway, &["show", "per-client", "client_ip=128.0.0.1"]).stdout;
    assert!(others.starts_with("per-client by client_ip: passes\n"), "{others}");
}

#[test]
fn names_and_values_may_hold_anything() {
    let gateway = Gateway::with_token(CONFIG);
    gateway.post("/login").form("username=a%26b%3D%2Fc+d%C3%BC").send();
    let show = |user: &str| {
        let user = format!("param.username={user}");
        let arguments = ["show", "login guesses", &user, "client_ip=127.0.0.1", "--format", "json"];
        limits(&gateway, &arguments).json()["rates"][0]["remaining"].clone()
    };
    assert_eq!(show("A&B=/c dÜ"), 1);
    assert_eq!(show("another"), 2);
    let ended = limits(&gateway, &["show", "flight"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "flight by one key for all: passes\n"), "{ended:?}");
}

#[test]
fn what_is_wrong_is_said_and_ends_with_1() {
    let gateway = Gateway::with_token(CONFIG);
    let wrong = |arguments: &[&str], said: &str| {
        let ended = limits(&gateway, arguments);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
        assert_eq!(ended.stdout, "");
    };
    wrong(&["show", "per-clint"], "there is no limit of that name; did you mean `per-client`?");
    wrong(&["show", "per-client"], "no value for `client_ip`");
    wrong(&["show", "per-client", "client=127.0.0.1"], "its key is `client_ip`");
    wrong(&["reset", "per-client", "client_ip=localhost"], "one IP address");
    wrong(&["show", "per-client", "client_ip=::1", "client_ip=::2"], "several values for `client_ip`");
}

#[test]
fn the_token_comes_from_a_file_or_the_environment() {
    let gateway = Gateway::with_token(CONFIG);
    let folder = Folder::empty();
    folder.write("right", " s3cret\n");
    folder.write("wrong", "wr0ng");
    folder.write("empty", "\n");
    let admin = format!("http://{}", gateway.admin());
    let ask = |file: &[&str], variables: &[(&str, &str)]| {
        let ended = folder.run_in(&[&["limits", "list", "--admin", &admin], file].concat(), variables);
        assert!(!ended.stderr.contains("s3cret") && !ended.stderr.contains("wr0ng"), "{ended:?}");
        ended
    };
    assert_eq!(ask(&["--token-file", "right"], &[]).code, Some(0));
    // What is said on the command line wins.
    assert_eq!(ask(&["--token-file", "right"], &[("PORTCULLIS_TOKEN", "wr0ng")]).code, Some(0));
    assert_eq!(ask(&["--token-file", "wrong"], &[("PORTCULLIS_TOKEN", "s3cret")]).code, Some(1));
    assert_eq!(ask(&[], &[("PORTCULLIS_TOKEN", "s3cret")]).code, Some(0));
    assert!(ask(&[], &[]).stderr.contains("PORTCULLIS_TOKEN"));
    for file in ["empty", "gone"] {
        let ended = ask(&["--token-file", file], &[]);
        assert!(ended.code == Some(1) && ended.stderr.contains("token file"), "{ended:?}");
    }
}

#[test]
fn usage_and_a_gateway_that_is_not_there_have_codes_of_their_own() {
    let run = |arguments: &[&str]| Folder::empty().run(arguments).code;
    assert_eq!(run(&["limits"]), Some(2));
    assert_eq!(run(&["limits", "show"]), Some(2));
    assert_eq!(run(&["limits", "show", "a", "without-a-value"]), Some(2));
    let ended =
        Folder::empty().run_in(&["limits", "list"], &[("PORTCULLIS_ADMIN", &format!("http://{}", unused_address()))]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("could not be reached"), "{ended:?}");
}
