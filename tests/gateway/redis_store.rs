//! A gateway with Redis as its operator sees it: logs and metrics, and what clients get during an outage.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{ApiDescription, Gateway, Origin, RedisServer, Request, Stopwatch, eventually};

fn gateway(origin: &Origin, redis: &RedisServer, rest: &str) -> Gateway {
    Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nstore: {{nodes: 1, redis: {{url: \"{}\"}}{rest}",
        origin.url(),
        redis.url()
    ))
}

fn ready(gateway: &Gateway) -> (u16, Value) {
    let response = Request::new(gateway.admin(), "GET", "/readyz").send();
    (response.status, serde_json::from_slice(&response.body).expect("JSON"))
}

fn metric(gateway: &Gateway, name: &str) -> f64 {
    let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{kind=\"redis\"}} ")));
    let value = line.unwrap_or_else(|| panic!("no {name} in\n{metrics}")).rsplit(' ').next();
    value.and_then(|value| value.parse().ok()).expect("a number")
}

const LIMITED: &str = "}\nlimits: [{name: all, key: client_ip, rate: 2/hour}]\n";

#[test]
fn the_start_says_where_counts_are_kept_and_no_password() {
    let redis = RedisServer::with_options(&["--requirepass", "s3cret"]);
    let origin = Origin::start();
    let url = format!("redis://:s3cret@{}/0", redis.address());
    let gateway = Gateway::start(format!(
        "upstream: {}\nadmin: {{address: 127.0.0.1:0}}\nstore: {{redis: {{url: \"{url}\", timeout: 10s, key_prefix: \"{{site}}\"}}{LIMITED}",
        origin.url()
    ));
    let expected = format!("counts are kept in redis at {} (single), prefix {{site}}", redis.address());
    assert!(gateway.log_messages().contains(&expected), "{:?}", gateway.log_messages());
    assert_eq!(gateway.get("/").status(), 200);
    assert_eq!(
        ready(&gateway),
        (
            200,
            json!({
                "status": "ready",
                "store": {
                    "kind": "redis", "up": true, "on_failure": "local",
                    "in_outage": [{"on_failure": "local", "limits": ["all"]}], "part": 1.0,
                },
            })
        )
    );
    assert!(!gateway.stderr().join("\n").contains("s3cret"));
}

#[test]
fn metrics_tell_of_the_store() {
    let (mut redis, origin) = (RedisServer::start(), Origin::start());
    let gateway = gateway(&origin, &redis, LIMITED);
    gateway.get("/").status();
    assert!(metric(&gateway, "portcullis_store_round_trip_seconds_count") >= 1.0);
    assert!(metric(&gateway, "portcullis_store_up") > 0.0);
    assert!(metric(&gateway, "portcullis_store_keys") < 10.0);
    redis.pause();
    gateway.get("/").status();
    assert!(metric(&gateway, "portcullis_store_errors_total") > 0.0);
    redis.kill();
    eventually("redis is missed", || {
        gateway.get("/").send();
        metric(&gateway, "portcullis_store_up") == 0.0
    });
    let before = metric(&gateway, "portcullis_store_errors_total");
    (0..3).for_each(|_| _ = gateway.get("/").send());
    let counted = metric(&gateway, "portcullis_store_errors_total") - before;
    assert!((2.5..3.5).contains(&counted), "{counted} of three decisions without Redis");
    redis.restart();
    eventually("redis is back", || metric(&gateway, "portcullis_store_up") > 0.0);
}

#[test]
fn under_deny_clients_are_told_and_the_application_is_not_asked() {
    let (mut redis, origin) = (RedisServer::start(), Origin::start());
    let gateway = gateway(&origin, &redis, &format!(", on_failure: deny{LIMITED}"));
    assert_eq!(gateway.get("/").status(), 200);
    redis.kill();
    eventually("redis is missed", || gateway.get("/").status() == 503);
    let before = origin.count();

    // The connection stays open, also after a body.
    let mut client = gateway.connect();
    for request in [gateway.get("/program"), gateway.post("/form").form("user=alice")] {
        let answer = request.send_on(&mut client);
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("connection"), None);
        let document: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!((&document["status"], &document["title"]), (&json!(503), &json!("Service Unavailable")));
        assert_eq!(document["request_id"].as_str(), answer.header("x-request-id"));
    }
    let page = gateway.get("/page").header("Accept", "text/html,*/*;q=0.8").send();
    assert_eq!((page.status, page.header("content-type")), (503, Some("text/html; charset=utf-8")));
    let told = page.text();
    assert!(told.contains("<title>The site is not available at the moment</title>"), "{told}");
    assert!(told.contains("503 Service Unavailable") && told.contains(">Try again in 1 second.</p>"), "{told}");
    assert_eq!(gateway.request("HEAD", "/head").send().body_length, 0);
    assert_eq!(origin.count(), before);

    let line = gateway.log_line("/program");
    assert_eq!((&line["decision"], &line["status"]), (&json!("error"), &json!(503)));
    assert!(line["error"].as_str().is_some_and(|error| error.contains("redis")), "{line}");
    let (status, told) = ready(&gateway);
    assert_eq!((status, &told["store"]["up"]), (503, &json!(false)));
    assert_eq!(told["store"]["away"][0]["server"], redis.address().to_string());

    redis.restart();
    let back = Stopwatch::start();
    eventually("the gateway is ready", || ready(&gateway).0 == 200);
    eventually("requests are decided", || gateway.get("/").status() == 200);
    assert!(back.elapsed() < Duration::from_secs(2), "{:?}", back.elapsed());
}

#[test]
fn each_limit_says_what_holds_while_redis_is_away() {
    let (mut redis, origin) = (RedisServer::start(), Origin::start());
    let gateway = gateway(
        &origin,
        &redis,
        "}\nlimits: [{name: all, key: client_ip, rate: 1000/hour}]\nroutes:\n\
         \x20 - {match: /strict, limits: [{name: strict, key: client_ip, rate: 100/hour, on_failure: deny}]}\n\
         \x20 - {match: /open, limits: [{name: open, key: client_ip, rate: 1/hour, on_failure: allow}]}\n\
         \x20 - {match: /shadow, limits: [{name: shadow, key: client_ip, rate: 1/hour, on_failure: deny, shadow: true}]}\n",
    );
    assert_eq!(gateway.get("/strict").status(), 200);
    redis.kill();
    eventually("redis is missed", || gateway.get("/strict").status() == 503);
    for _ in 0..3 {
        assert_eq!(gateway.get("/open").status(), 200);
        assert_eq!(gateway.get("/shadow").status(), 200);
        assert_eq!(gateway.get("/").status(), 200);
    }
    assert_eq!(gateway.get("/strict").status(), 503);
    let (status, told) = ready(&gateway);
    // The other routes serve.
    assert_eq!((status, &told["store"]["on_failure"]), (200, &json!("local")));
    let in_outage = json!([
        {"on_failure": "local", "limits": ["all"]},
        {"on_failure": "allow", "limits": ["open"]},
        {"on_failure": "deny", "limits": ["strict"]},
    ]);
    assert_eq!(told["store"]["in_outage"], in_outage);
    let said = gateway.run(&["status"]).stdout;
    assert!(said.contains("Limits do as on_failure says: local for all; allow for open; deny for strict."), "{said}");
    let state = |limit: &str| {
        let path = format!("/api/v1/limits/{limit}/state?client_ip=127.0.0.1");
        Request::new(gateway.admin(), "GET", &path).host("localhost").send()
    };
    assert_eq!((state("strict").status, state("open").status), (503, 200));
    assert_eq!(state("strict").header("content-type"), Some("application/problem+json"));
}

#[test]
fn a_gateway_is_ready_without_redis_as_its_limits_are() {
    for (usual, own, expected) in [("deny", "allow", 200), ("local", "deny", 503)] {
        let (mut redis, origin) = (RedisServer::start(), Origin::start());
        let limits = format!(
            ", on_failure: {usual}}}\nlimits: [{{name: all, key: client_ip, rate: 100/hour, on_failure: {own}}}]\n"
        );
        let gateway = gateway(&origin, &redis, &limits);
        redis.kill();
        eventually("redis is missed", || ready(&gateway).1["store"]["up"] == json!(false));
        assert_eq!((gateway.get("/").status(), ready(&gateway).0), (expected, expected), "{own}");
        let said = gateway.run(&["status"]).stdout;
        assert!(said.contains(&format!("Limits do as on_failure says: {own}.")), "{said}");
    }
}

#[test]
fn a_start_without_redis_serves_by_itself_until_it_comes() {
    let mut redis = RedisServer::start();
    redis.kill();
    let origin = Origin::start();
    let gateway = gateway(&origin, &redis, LIMITED);
    let statuses: Vec<_> = (0..3).map(|_| gateway.get("/").status()).collect();
    assert_eq!(statuses, [200, 200, 429]);
    let (status, told) = ready(&gateway);
    assert_eq!((status, &told["store"]["up"]), (200, &json!(false)));
    eventually("the outage is logged", || gateway.log_messages().iter().any(|said| said.contains("is down")));
    redis.restart();
    eventually("redis is found", || ready(&gateway).1["store"]["up"] == true);
}

#[test]
fn another_store_waits_for_the_next_start_and_is_named() {
    let (redis, origin) = (RedisServer::start(), Origin::start());
    let gateway = gateway(&origin, &redis, LIMITED);
    for _ in 0..2 {
        assert_eq!(gateway.get("/").status(), 200);
    }
    gateway.reload(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nstore: {{redis: {{url: \"redis://:s3cret@127.0.0.1:1\", timeout: 50ms}}, on_failure: deny{LIMITED}",
        origin.url()
    ));
    let said = gateway.log_messages();
    let waits = "store.redis.url, store.redis.timeout, store.nodes: the change takes effect with the next start";
    assert!(said.iter().any(|said| said.starts_with(waits)), "{said:?}");
    assert!(!gateway.stderr().join("\n").contains("s3cret"));
    for told in ["/api/v1/status", "/api/v1/advice"].map(|path| gateway.admin_request("GET", path).send().text()) {
        assert!(told.contains("store.redis.url") && !told.contains("s3cret"), "{told}");
    }
    // The store that runs is the one of the start, and what holds while it is away belongs to the limits.
    assert_eq!(gateway.get("/").status(), 429);
    assert_eq!(ready(&gateway).1["store"]["on_failure"], "deny");
}

#[test]
fn a_request_whose_client_resets_while_redis_decides_is_sent_and_counts_by_its_answer() {
    let (redis, origin) = (RedisServer::start(), Origin::start());
    let gateway = Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nstore: {{nodes: 1, redis: {{url: \"{}\", timeout: 10s}}}}\n\
         routes:\n  - match: /\n    outcome: {{success: {{status: 200}}}}\n    \
         limits: [{{name: guesses, key: client_ip, rate: 3/hour, count: failures}}]\n",
        origin.url(),
        redis.url()
    ));
    let state = || {
        let path = "/api/v1/limits/guesses/state?client_ip=127.0.0.1";
        Request::new(gateway.admin(), "GET", path).host("localhost").send().text()
    };
    let connections = || {
        let metrics = Request::new(gateway.admin(), "GET", "/metrics").send().text();
        metrics.lines().find_map(|line| line.strip_prefix("portcullis_connections ")?.parse::<f64>().ok())
    };
    for sent in 1..=3 {
        let mut client = gateway.connect();
        redis.pause();
        let before = redis.unread();
        client.send(gateway.get("/").bytes());
        // A question is longer than what else a gateway sends.
        eventually("Redis is asked", || redis.unread() > before + 100);
        client.abort();
        eventually("the gateway knows that the client has left", || connections() == Some(0.0));
        redis.resume();
        eventually("the application has the request", || origin.count() == sent);
        eventually("its answer is no failure", || state().contains("\"remaining\":3"));
    }
}

/// What docs/src/redis.md lists as the rights of a gateway in Redis, and no more.
const RIGHTS: &str = "~portcullis:* &portcullis:* -@all +evalsha +script|load +time +get +set +del +getrange \
                      +setrange +pexpire +pttl +hget +hmget +hset +hdel +hscan +zadd +zrem +zcard +zrangebyscore \
                      +zremrangebyscore +publish +subscribe +ping +hello +select +info +dbsize +role +client|setname \
                      +client|tracking +cluster|slots +asking";

#[test]
fn a_user_with_the_rights_of_the_book_is_enough() {
    let page = std::fs::read_to_string("docs/src/redis.md").expect("the page of the book");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(RIGHTS), "docs/src/redis.md lists other rights than {RIGHTS}");

    let (redis, origin) = (RedisServer::start(), Origin::start());
    let user = [&["ACL", "SETUSER", "gate", "on", ">s3cret"][..], &RIGHTS.split(' ').collect::<Vec<_>>()].concat();
    assert_eq!(redis.cli(&user), "OK");
    let gateway = Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nstore: {{redis: {{url: \"redis://gate:s3cret@{}/0\", timeout: 10s}}\n\
         }}\nlimits:\n  - {{name: all, key: client_ip, rate: 2/hour; 5000/day}}\n  - {{name: flight, key: [], concurrent: 5}}\n",
        origin.url(),
        redis.address()
    ));
    for expected in [200, 200, 429] {
        assert_eq!(gateway.get("/").status(), expected);
    }
    let reset = "/api/v1/limits/all/state?client_ip=127.0.0.1";
    assert_eq!(Request::new(gateway.admin(), "DELETE", reset).host("localhost").status(), 204);
    eventually("the reset is heard", || gateway.get("/").status() == 200);
    assert_eq!(ready(&gateway).1["store"]["up"], true);
    assert_eq!(redis.cli(&["ACL", "LOG"]), "", "something was refused");
    assert!(!gateway.stderr().join("\n").contains("WARN"), "{:?}", gateway.stderr());
}

#[test]
fn a_reload_with_another_store_says_what_waits_and_shows_the_store_that_runs() {
    let (redis, origin) = (RedisServer::start(), Origin::start());
    let config = |prefix: &str| {
        format!(
            "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nstore: {{redis: {{url: \"{}\", key_prefix: {prefix}}}}}\n\
             limits: [{{name: pace, key: client_ip, rate: 100/hour}}]\n",
            origin.url(),
            redis.url()
        )
    };
    let gateway = Gateway::start(config("aa"));
    let description = ApiDescription::of(&gateway);
    let reload = || {
        let answer = gateway.admin_request("POST", "/api/v1/reload").send();
        description.check("POST", "/api/v1/reload", &answer);
        answer.json()
    };
    let shown = || gateway.admin_request("GET", "/api/v1/config").send().text();
    let status = || {
        let answer = gateway.admin_request("GET", "/api/v1/status").send();
        description.check("GET", "/api/v1/status", &answer);
        answer.json()
    };

    gateway.write_config(config("bb"));
    assert_eq!(reload()["waiting"], json!(["store.redis.key_prefix"]));
    let printed = gateway.run(&["reload"]);
    let words = ", but for store.redis.key_prefix, which waits for the next start";
    assert!(printed.code == Some(0) && printed.stdout.trim_end().ends_with(words), "{printed:?}");
    assert!(shown().contains("key_prefix: aa") && !shown().contains("bb"), "{}", shown());
    let told = status();
    assert_eq!(told["configuration"]["waiting"], json!(["store.redis.key_prefix"]), "{told}");
    assert_eq!(told["verdict"]["level"], "notice", "{told}");
    assert_eq!(told["advice"][0]["kind"], "waits_for_start", "{told}");

    gateway.write_config(config("aa"));
    assert_eq!(reload().get("waiting"), None);
    assert!(shown().contains("key_prefix: aa"), "{}", shown());
    let told = status();
    assert_eq!((&told["configuration"].get("waiting"), &told["verdict"]["level"]), (&None, &json!("well")), "{told}");
    assert_eq!(told["advice"], json!([]));

    // From a store in Redis to one in memory.
    gateway.write_config("admin: {address: 127.0.0.1:0}\n".to_owned() + &format!("upstream: {}\n", origin.url()));
    assert_eq!(reload()["waiting"], json!(["store.redis"]));
    assert!(shown().contains("key_prefix: aa"), "{}", shown());
}
