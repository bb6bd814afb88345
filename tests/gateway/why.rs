//! Why a request was denied, and who asks most, as the admin API tells it.

use serde_json::{Value, json};

use crate::support::{Gateway, Origin, Response};

const CONFIG: &str = "\
admin: {address: 127.0.0.1:0}
lists: {abusers: {addresses: [127.0.0.9]}, office: {addresses: [198.51.100.0/24]}}
access: {deny: [abusers]}
client_ip: {trusted_proxies: [127.0.0.1], header: x-real-ip}
routes:
  - name: login
    match: /login
    limits:
      - {name: login-pace, key: client_ip, rate: 2/minute; 100/day}
      - {name: login-names, key: [client_ip, param.username], rate: 50/hour}
      - {name: login-new, key: [], rate: 1/hour, shadow: true}
  - {name: slow, match: /slow, limits: [{name: slowly, key: client_ip, rate: 1/hour, then: {delay: 100ms}}]}
  - {name: tar, match: /tar, limits: [{name: sticky, key: client_ip, rate: 1/hour, then: {tarpit: 100ms}}]}
  - {name: work, match: /work, limits: [{name: puzzle, key: client_ip, rate: 1/hour, then: {challenge: pow}}]}
  - {name: bad, match: /bad, limits: [{name: knocks, key: bearer, rate: 1/hour, then: {ban: 15m}}]}
  - {name: staff, match: /staff, only: [office]}
";

fn start(origin: &Origin) -> Gateway {
    Gateway::start(format!("upstream: {}\n{CONFIG}", origin.url()))
}

fn api(gateway: &Gateway, path: &str) -> Response {
    let path = format!("/api/v1/{path}");
    gateway.admin_request("GET", &path).send()
}

#[track_caller]
fn json_of(gateway: &Gateway, path: &str) -> Value {
    let response = api(gateway, path);
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

fn from(gateway: &Gateway, client: &str, target: &str) -> Response {
    gateway.get(target).header("x-real-ip", client).send()
}

/// The story behind an answer, by its id.
#[track_caller]
fn story_of(gateway: &Gateway, answer: &Response) -> Value {
    let id = answer.header("x-request-id").expect("every answer has an id");
    assert_eq!(id.len(), 32, "{} {id}", answer.status);
    json_of(gateway, &format!("requests/{id}"))
}

#[test]
fn a_denial_is_told_with_every_limit_that_it_met() {
    let origin = Origin::start();
    let gateway = start(&origin);
    let login = || gateway.post("/login?next=1").header("x-real-ip", "198.51.100.7").form("username=Alice").send();
    login();
    let passed = login();
    let denied = login();
    assert_eq!((passed.status, denied.status), (200, 429));
    assert_eq!(denied.json()["request_id"], denied.header("x-request-id").expect("an id"));
    let story = story_of(&gateway, &denied);
    let names: Vec<_> = story.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "ban", "client", "decision", "host", "id", "limit", "limits", "list", "method", "path", "peer", "route",
        "sentence", "status", "time", "until",
    ];
    assert_eq!(names, expected);
    let of = |name: &str| story[name].clone();
    assert_eq!(
        [of("decision"), of("client"), of("peer")],
        [json!("denied"), json!("198.51.100.7"), json!("127.0.0.1")]
    );
    assert_eq!([of("method"), of("path"), of("route")], [json!("POST"), json!("/login"), json!("login")]);
    assert_eq!(
        [of("status"), of("limit"), of("ban"), of("list")],
        [json!(429), json!("login-pace"), json!(null), json!(null)]
    );

    let limits = story["limits"].as_array().expect("limits");
    assert_eq!(
        limits.iter().map(|limit| limit["name"].as_str().expect("a name")).collect::<Vec<_>>(),
        ["login-pace", "login-names", "login-new"]
    );
    assert_eq!(limits[0]["key"], json!({"client_ip": "198.51.100.7"}));
    assert_eq!(limits[1]["key"], json!({"client_ip": "198.51.100.7", "param.username": "alice"}));
    assert_eq!(limits[2]["key"], json!({}));
    let decisions: Vec<_> = limits.iter().map(|limit| limit["decision"].clone()).collect();
    assert_eq!(decisions, ["denied", "allowed", "shadow_denied"]);
    let rate = |limit: usize, rate: usize| limits[limit]["rates"][rate].clone();
    assert_eq!([rate(0, 0)["limit"].clone(), rate(0, 0)["window"].clone(), rate(0, 0)["counted"].clone()], [2, 60, 2]);
    assert_eq!([rate(0, 1)["limit"].clone(), rate(0, 1)["counted"].clone()], [100, 2]);
    assert_eq!(rate(1, 0)["counted"], 2);
    assert!(rate(0, 0)["frees_at"].as_str() > story["time"].as_str(), "{story}");
    assert!(story["until"].as_str() > story["time"].as_str(), "{story}");

    let sentence = story["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.contains(
            "UTC: the limit login-pace allows 2 requests a minute for 198.51.100.7, and so many were counted"
        ) && sentence.contains("; the next one may pass from "),
        "{sentence}"
    );
    // A request that passed has no story.
    let id = passed.header("x-request-id").expect("an id");
    let unknown = api(&gateway, &format!("requests/{id}"));
    assert_eq!((unknown.status, unknown.header("content-type")), (404, Some("application/problem+json")));
}

#[test]
fn every_kind_of_denial_has_its_story() {
    let origin = Origin::start();
    let gateway = start(&origin);
    for target in ["/slow", "/tar", "/work", "/bad"] {
        assert_eq!(from(&gateway, "198.51.100.8", target).status, 200, "{target}");
    }
    let check = |client: &str, target: &str, decision: &str, limit: Option<&str>, words: &str| {
        let answer = from(&gateway, client, target);
        let story = story_of(&gateway, &answer);
        assert_eq!((&story["decision"], &story["limit"]), (&json!(decision), &json!(limit)), "{story}");
        assert_eq!(story["status"], answer.status);
        assert!(story["sentence"].as_str().expect("a sentence").contains(words), "{story}");
        story
    };
    check("198.51.100.8", "/slow", "delayed", Some("slowly"), "then forwarded: the limit slowly");
    check("198.51.100.8", "/tar", "tarpitted", Some("sticky"), "Held at");
    check("198.51.100.8", "/work", "challenged", Some("puzzle"), "proof of work");
    let banned = check("198.51.100.8", "/bad", "banned", Some("knocks"), "has banned");
    assert!(banned["ban"].is_string());
    let again = check("198.51.100.8", "/bad", "banned", Some("knocks"), "has banned");
    assert_eq!(again["ban"], banned["ban"]);
    // Both say when the ban ends, and the ban says what tripped it.
    let ban = json_of(&gateway, &format!("bans/{}", banned["ban"].as_str().expect("an id")));
    assert_eq!(ban["reason"], "more than 1 request in 1h");
    let to_the_second = |moment: &Value| moment.as_str().expect("a moment")[..18].to_owned();
    assert_eq!(
        [to_the_second(&banned["until"]), to_the_second(&again["until"])],
        [to_the_second(&ban["until"]), to_the_second(&ban["until"])]
    );
    assert_eq!(check("198.51.100.8", "/slow", "delayed", Some("slowly"), "forwarded")["until"], json!(null));
    let listed = check("127.0.0.9", "/", "listed", None, "the list abusers denies 127.0.0.9");
    assert_eq!(listed["list"], "abusers");
    let only = check("203.0.113.1", "/staff", "listed", None, "the route staff lets only members");
    assert_eq!((&only["list"], &only["route"]), (&json!(null), &json!("staff")));
}

#[test]
fn tokens_are_masked_and_html_stays_text() {
    let origin = Origin::start();
    let gateway = start(&origin);
    let bad = || gateway.get("/bad?<script>").header("authorization", "Bearer hunter2secret").send();
    bad();
    let story = story_of(&gateway, &bad());
    let all = format!("{story} {}", json_of(&gateway, "top?limit=knocks"));
    assert!(!all.contains("hunter2"), "{all}");
    assert!(story["limits"][0]["key"]["bearer"].as_str().expect("a mask").starts_with("***"), "{story}");
}

#[test]
fn the_newest_requests_are_listed_by_what_is_asked_for() {
    let origin = Origin::start();
    let gateway = start(&origin);
    for client in ["198.51.100.7", "198.51.100.7", "198.51.100.7", "198.51.100.7", "203.0.113.5"] {
        from(&gateway, client, "/login");
    }
    from(&gateway, "127.0.0.9", "/login");
    let ids = |query: &str| {
        let listed = json_of(&gateway, &format!("requests{query}"));
        listed.as_array().expect("requests").iter().map(|story| story["client"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(""), ["127.0.0.9", "198.51.100.7", "198.51.100.7"]);
    assert_eq!(ids("?n=1"), ["127.0.0.9"]);
    assert_eq!(ids("?decision=denied"), ["198.51.100.7", "198.51.100.7"]);
    assert_eq!(ids("?decision=listed&limit=login-pace"), Vec::<Value>::new());
    assert_eq!(ids("?limit=login-pace&client=198.51.100.7&n=1000"), ["198.51.100.7", "198.51.100.7"]);
    assert_eq!(ids("?client=203.0.113.5"), Vec::<Value>::new());
}

#[test]
fn the_busiest_keys_of_a_limit_and_the_busiest_clients_are_counted() {
    let origin = Origin::start();
    let gateway = start(&origin);
    for (client, requests) in [("198.51.100.7", 9), ("198.51.100.8", 5), ("198.51.100.9", 1)] {
        for _ in 0..requests {
            from(&gateway, client, "/login");
        }
    }
    for _ in 0..12 {
        from(&gateway, "127.0.0.9", "/");
        from(&gateway, "203.0.113.1", "/");
    }
    let top = |query: &str| {
        let top = json_of(&gateway, &format!("top{query}"));
        let entries = top.as_array().expect("keys").iter().map(|entry| {
            assert!(entry["first"].as_str() <= entry["last"].as_str(), "{entry}");
            let count = |name: &str| entry[name].as_u64().expect("a count");
            (entry["key"]["client_ip"].as_str().unwrap_or_default().to_owned(), count("requests"), count("denied"))
        });
        entries.collect::<Vec<_>>()
    };
    let of = |client: &str, requests, denied| (client.to_owned(), requests, denied);
    let seven = of("198.51.100.7", 9, 7);
    let eight = of("198.51.100.8", 5, 3);
    assert_eq!(top("?limit=login-pace"), [seven.clone(), eight.clone()]);
    assert_eq!(
        top("?limit=login-pace&by=requests&minutes=1"),
        [seven.clone(), eight.clone(), of("198.51.100.9", 1, 0)]
    );
    assert_eq!(top(""), [of("127.0.0.9", 12, 12), seven.clone(), eight]);
    assert_eq!(top("?n=1&minutes=1440"), [of("127.0.0.9", 12, 12)]);
    let by_requests = top("?by=requests&n=3");
    assert!(by_requests.contains(&of("203.0.113.1", 12, 0)) && by_requests.contains(&seven), "{by_requests:?}");
    // One key for all, and a limit in shadow mode denies none.
    assert_eq!(top("?limit=login-new&by=requests"), [of("", 15, 0)]);
    assert_eq!(top("?limit=login-new"), []);
}

#[test]
fn clients_are_counted_by_the_prefix_of_the_configuration_in_force() {
    let origin = Origin::start();
    let config = |prefixes: &str| {
        let trusted = format!("{{trusted_proxies: [127.0.0.1], header: x-real-ip{prefixes}}}");
        format!("upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nclient_ip: {trusted}\n", origin.url())
    };
    let gateway = Gateway::start(config(", ipv4_prefix: 24, ipv6_prefix: 48"));
    let ask = || {
        for client in ["198.51.100.7", "198.51.100.8", "2001:db8:1:2::7", "2001:db8:1:3::7"] {
            from(&gateway, client, "/");
        }
    };
    let top = || {
        let top = json_of(&gateway, "top?by=requests");
        let clients = top.as_array().expect("clients").iter().map(|entry| {
            (entry["key"]["client_ip"].as_str().expect("a network").to_owned(), entry["requests"].as_u64())
        });
        let mut clients: Vec<_> = clients.collect();
        clients.sort();
        clients
    };
    let of = |client: &str, requests| (client.to_owned(), Some(requests));
    ask();
    assert_eq!(top(), [of("198.51.100.0/24", 2), of("2001:db8:1::/48", 2)]);
    gateway.reload(config(", ipv4_prefix: 16, ipv6_prefix: 32"));
    ask();
    // What was counted before keeps its networks.
    assert_eq!(
        top(),
        [of("198.51.0.0/16", 2), of("198.51.100.0/24", 2), of("2001:db8:1::/48", 2), of("2001:db8::/32", 2)]
    );
    // A single address begins with the same bits as its network.
    gateway.reload(config(", ipv6_prefix: 128"));
    from(&gateway, "2001:db8::", "/");
    from(&gateway, "198.51.0.0", "/");
    let counted = top();
    assert!(counted.contains(&of("2001:db8::", 1)) && counted.contains(&of("198.51.0.0", 1)), "{counted:?}");
}

#[test]
fn a_wrong_query_is_a_problem() {
    let gateway = start(&Origin::start());
    for (wrong, status) in [
        ("top?limit=login-pase", 404),
        ("top?limit=", 404),
        ("top?by=denials", 400),
        ("top?n=1001", 400),
        ("top?minutes=1441", 400),
        ("requests?decision=allowed", 400),
        ("requests?decision=", 400),
        ("requests?client=198.51.100.0/24", 400),
        ("requests?limit=nothing", 404),
    ] {
        let response = api(&gateway, wrong);
        assert_eq!(response.status, status, "{wrong}: {}", response.text());
        assert_eq!(response.header("content-type"), Some("application/problem+json"), "{wrong}");
    }
    let problem = api(&gateway, "top?limit=login-pase").json();
    assert!(problem["detail"].as_str().expect("a detail").contains("did you mean `login-pace`?"), "{problem}");
}
