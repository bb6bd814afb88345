//! What the gateway finds misconfigured, over real traffic.

use std::thread;

use serde_json::Value;

use crate::support::{ApiDescription, Gateway, Origin, Request, eventually};

const ADMIN: &str = "admin: {address: 127.0.0.1:0}\n";

/// Loopback addresses that requests come from.
const SOURCES: usize = 50;

pub(crate) fn advice(gateway: &Gateway) -> Vec<Value> {
    let response = Request::new(gateway.admin(), "GET", "/api/v1/advice").host(&gateway.admin().to_string()).send();
    assert_eq!(response.status, 200, "{}", response.text());
    ApiDescription::of(gateway).check("GET", "/api/v1/advice", &response);
    response.json().as_array().expect("a list").clone()
}

pub(crate) fn kinds(gateway: &Gateway) -> Vec<String> {
    advice(gateway).iter().map(|advice| advice["kind"].as_str().expect("a kind").to_owned()).collect()
}

/// Sends so many requests from many addresses.
fn send(count: usize, request: impl Fn(usize) -> Request + Sync) {
    thread::scope(|scope| {
        for worker in 0..4 {
            let request = &request;
            scope.spawn(move || {
                for number in (worker..count).step_by(4) {
                    let source = format!("127.0.1.{}", 1 + number % SOURCES);
                    request(number).from(&source).send();
                }
            });
        }
    });
}

/// A login without mistakes.
fn login(origin: &Origin) -> String {
    format!(
        "{ADMIN}upstream: {}\nroutes:\n  - name: login\n    match: POST /login\n    \
         outcome: {{success: {{status: 302, header: {{location: \"/account*\"}}}}, failure: {{status: 401}}, otherwise: neither}}\n    \
         limits:\n      - {{name: account, key: param.username, rate: 100000/hour, count: failures}}\n      \
         - {{name: client, key: client_ip, rate: 100000/hour, count: failures}}\n",
        origin.url()
    )
}

#[test]
fn a_set_up_without_mistakes_gets_no_advice() {
    let origin = Origin::answering(|_| crate::support::Answer::new(401, &[], ""));
    let gateway = Gateway::start(login(&origin));
    // A few clients that try forwarding headers are no reason.
    send(1100, |number| {
        let request = gateway.post("/login").form(&format!("username=user{number}"));
        if number % 50 == 0 { request.header("X-Forwarded-For", "10.0.0.1") } else { request }
    });
    eventually("the requests are counted", || gateway.stdout().len() >= 1100);
    assert_eq!(advice(&gateway), Vec::<Value>::new());
}

#[test]
fn each_mistake_is_named_with_what_to_write_and_gone_when_it_is_mended() {
    let origin = Origin::start();
    let gateway = Gateway::start(login(&origin));
    // The form has another field, and the application answers 200 to all.
    send(1010, |number| {
        gateway.post("/login").form(&format!("user=user{number}")).header("X-Forwarded-For", "10.0.0.1")
    });
    let expected = ["untrusted_forwarding", "missing_field", "outcome_matches_neither"];
    eventually("three are named", || kinds(&gateway) == expected);
    let all = advice(&gateway);
    assert_eq!((&all[1]["limit"], &all[2]["route"]), (&"account".into(), &"login".into()));
    assert!(all[0]["help"].as_str().is_some_and(|help| help.contains("trusted_proxies")), "{all:?}");
    assert!(all[1]["message"].as_str().is_some_and(|message| message.contains("lack param.username")), "{all:?}");
    // Each is in the log once, and the status has them too.
    let logged = gateway.stderr().iter().filter(|line| line.contains("\"advice\":\"missing_field\"")).count();
    assert_eq!(logged, 1);
    let status =
        Request::new(gateway.admin(), "GET", "/api/v1/status").host(&gateway.admin().to_string()).send().json();
    assert_eq!(status["advice"].as_array().map(Vec::len), Some(3), "{status}");
    // The other requests are ordinary.
    send(1100, |number| gateway.post("/login").form(&format!("username=user{number}")));
    eventually("what is mended is gone", || kinds(&gateway) == ["outcome_matches_neither"]);
}

#[test]
fn one_address_that_sends_all_and_a_limit_that_counts_nothing_are_named() {
    let origin = Origin::start();
    let gateway = Gateway::start(login(&origin));
    let ask = |count: usize| {
        for _ in 0..count {
            assert_eq!(gateway.get("/").from("127.0.0.9").status(), 200);
        }
    };
    ask(1010);
    eventually("both are named", || {
        // A busy machine may count from a few requests later.
        ask(1);
        kinds(&gateway) == ["one_client", "limit_never_counted", "limit_never_counted"]
    });
    assert!(advice(&gateway)[0]["message"].as_str().is_some_and(|message| message.starts_with("127.0.0.9 sent 1")));
    assert_eq!(gateway.post("/login").form("username=a").from("127.0.1.1").status(), 200);
    eventually("the limit counts now", || kinds(&gateway) == ["one_client"]);
    eventually("others ask too", || {
        send(100, |_| gateway.get("/"));
        kinds(&gateway).is_empty()
    });
}

#[test]
fn what_check_warns_of_is_advice() {
    let login = "routes:\n  - match: POST /login\n    outcome: {success: {status: 302, header: {location: '/account*'}}}\n    \
                 limits: [{key: param.username, rate: 5/hour, count: failures}]\n";
    let gateway = Gateway::start(format!("{ADMIN}upstream: http://127.0.0.1:1\n{login}"));
    let all = advice(&gateway);
    assert_eq!(kinds(&gateway), ["check"], "{all:?}");
    assert!(all[0]["message"].as_str().is_some_and(|message| message.starts_with("portcullis.yaml:")), "{all:?}");
    // A reload that leaves it as it is changes neither since when it holds nor what it says but its line.
    gateway.reload(format!("# A comment.\n{ADMIN}upstream: http://127.0.0.1:1\n{login}"));
    let moved = advice(&gateway);
    assert_eq!((&moved[0]["since"], &moved[0]["help"]), (&all[0]["since"], &all[0]["help"]));
    assert_ne!(moved[0]["message"], all[0]["message"]);
    gateway.reload(format!("{ADMIN}upstream: http://127.0.0.1:1\n"));
    assert_eq!(advice(&gateway), Vec::<Value>::new());
}

#[test]
fn logins_below_another_prefix_are_told_once_and_gone_when_the_route_is_moved() {
    let origin = Origin::answering(|request| {
        let status = if request.target.starts_with("/gone/") { 404 } else { 200 };
        crate::support::Answer::new(status, &[], "")
    });
    let recipe = crate::support::Folder::empty().run(&["recipe", "wordpress", "--upstream", &origin.url()]).stdout;
    let recipe = recipe.replace("0.0.0.0:8080", "127.0.0.1:0").replace("127.0.0.1:9090", "127.0.0.1:0");
    let gateway = Gateway::start(&recipe);
    let post = |target: &str, count: usize| {
        for number in 0..count {
            let request = gateway.post(target).from(&format!("127.0.1.{}", number + 1));
            request.form(&format!("log=user{number}&pwd=x")).send();
        }
    };
    // Others than logins, one that the application does not have, and one that is met by its limits.
    post("/blog/wp-comments-post.php", 12);
    post("/gone/wp-login.php", 12);
    post("/wp-login.php", 12);
    post("/blog/wp-login.php", 9);
    eventually("all are counted", || gateway.stdout().len() >= 45);
    assert_eq!(kinds(&gateway), Vec::<String>::new());
    post("/blog/wp-login.php", 3);
    eventually("they are told", || kinds(&gateway) == ["unlimited_login"]);
    let all = advice(&gateway);
    let help = all[0]["help"].as_str().expect("a text");
    assert!(help.contains("`portcullis recipe wordpress --prefix /blog`"), "{all:?}");
    post("/blog/wp-login.php", 3);
    eventually("it is logged", || gateway.stderr().iter().any(|line| line.contains("unlimited_login")));
    let logged = gateway.stderr().iter().filter(|line| line.contains("\"advice\":\"unlimited_login\"")).count();
    assert_eq!(logged, 1);
    gateway.reload(recipe.replace("match: POST /wp-login.php", "match: POST /blog/wp-login.php"));
    eventually("it is mended", || kinds(&gateway).is_empty());
}

#[test]
fn a_route_that_nobody_asks_for_is_named_with_the_path_much_like_its_own() {
    let origin = Origin::start();
    let guarded = ["/api/v1/orders", "/report", "/cart/*", "/account/settings", "/far"];
    let routes = guarded.map(|path| {
        format!("  - {{match: GET {path}, limits: [{{name: {}, key: client_ip, rate: 10000/hour}}]}}\n", &path[1..4])
    });
    let gateway = Gateway::start(format!("{ADMIN}upstream: {}\nroutes:\n{}", origin.url(), routes.concat()));
    let asked = ["/shop/api/v1/orders", "/reports", "/my/cart/1", "/acount/settings", "/other"];
    send(1100, |number| gateway.get(asked[number % asked.len()]));
    let told = || {
        let near = advice(&gateway).into_iter().filter(|advice| advice["kind"] == "route_never_asked_for");
        near.map(|advice| advice["help"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    eventually("four are named", || told().len() == 4);
    for path in &asked[..4] {
        assert!(told().iter().any(|help| help.contains(&format!("`match: GET {path}`"))), "{path}: {:?}", told());
    }
    assert_eq!(gateway.get("/report").status(), 200);
    eventually("it is asked for now", || told().len() == 3);
}

#[test]
fn a_store_without_room_for_new_clients_is_named() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "{ADMIN}store: {{memory: {{max_keys: 5}}}}\nupstream: {}\nlimits: [{{name: x, key: client_ip, rate: 1/hour}}]",
        origin.url()
    ));
    let ask = |client: usize| gateway.get("/").from(&format!("127.0.1.{client}")).status();
    assert_eq!((1..=5).map(|client| [ask(client), ask(client)]).collect::<Vec<_>>(), [[200, 429]; 5]);
    assert_eq!(advice(&gateway), Vec::<Value>::new());
    let denied = gateway.get("/").from("127.0.1.9").send();
    assert_eq!(denied.status, 429, "it has sent nothing before");
    let id = denied.header("x-request-id").expect("an id");
    let story = gateway.admin_request("GET", &format!("/api/v1/requests/{id}")).send().json();
    let sentence = story["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("for 127.0.1.9, and the store has no room to count it: "), "{sentence}");
    assert_eq!(story["limits"][0]["rates"], serde_json::json!([]), "nothing was counted");
    eventually("it is named", || kinds(&gateway) == ["store_full"]);
}
