//! The request log: what it has, and what it never has.

use http::Request;
use serde_json::{Value, json};

use crate::http2::{ask as ask_over_http2, over_http2};
use crate::support::{Answer, Gateway, Origin, RedisServer, eventually, without_digits};

fn logged(origin: &Origin, more: &str) -> Gateway {
    Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: [{}]}}\nroutes:\n  - name: login\n    match: /login\n    limits:\n      - {{name: login-pace, key: client_ip, rate: 1/hour}}\n{more}",
        origin.url()
    ))
}

#[test]
fn a_request_is_a_line_of_json_with_its_story() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    assert_eq!(gateway.post("/login").host("App.example").form("user=alice").status(), 200);
    let line = gateway.log_line("/login");
    for key in [
        "time",
        "request_id",
        "trace_id",
        "client",
        "peer",
        "scheme",
        "protocol",
        "method",
        "host",
        "path",
        "user_agent",
        "route",
        "decision",
        "limit",
        "key",
        "key_masked",
        "ban",
        "retry_after",
        "shadow",
        "status",
        "upstream",
        "server",
        "duration_ms",
        "bytes_in",
        "bytes_out",
    ] {
        assert!(line.get(key).is_some(), "{key} in {line}");
    }
    assert_eq!(line["client"], "127.0.0.1");
    assert_eq!(line["peer"], "127.0.0.1");
    assert_eq!(line["method"], "POST");
    assert_eq!(line["route"], "login");
    assert_eq!(line["decision"], "allowed");
    assert_eq!(line["limit"], Value::Null);
    assert_eq!(line["status"], 200);
    assert_eq!(line["upstream"], "app");
    assert_eq!(line["server"], origin.address().to_string());
    assert_eq!((line["bytes_in"].as_u64(), line["bytes_out"].as_u64()), (Some(10), Some(6)));
    assert!(line["duration_ms"].as_f64().is_some_and(|spent| spent > 0.0), "{line}");
    assert_eq!(Some(line["request_id"].as_str().expect("an id")), origin.last().header("x-request-id"));
}

#[test]
fn a_denial_names_the_limit_that_decided() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    assert_eq!(gateway.get("/login").status(), 200);
    assert_eq!(gateway.get("/login/").status(), 429);
    let line = gateway.log_line("/login/");
    assert_eq!((line["decision"].as_str(), line["limit"].as_str()), (Some("denied"), Some("login-pace")));
    assert_eq!(line["status"], 429);
    assert_eq!(line["upstream"], Value::Null);
    assert!(line["retry_after"].as_u64().is_some_and(|seconds| (3590..=3600).contains(&seconds)), "{line}");
    assert_eq!(line["key_masked"], "client_ip=127.0.*.*");
    assert!(line["key"].as_str().is_some_and(|key| key.len() == 32), "{line}");
    assert_eq!(gateway.log_line("/login")["key"], Value::Null, "what passed was decided by no limit");
}

#[test]
fn a_line_says_how_and_with_what_and_in_which_trace_it_was_asked() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let origin = Origin::start();
    let gateway = logged(&origin, "client_ip: {trusted_proxies: [127.0.0.2]}");
    let ask = |path: &str| gateway.get(path).header("User-Agent", "curl/8 \"\u{e9}\"");
    assert_eq!(ask("/a?token=geheim").header("traceparent", &format!("00-{TRACE}-00f067aa0ba902b7-01")).status(), 200);
    let line = gateway.log_line("/a");
    assert_eq!((line["protocol"].as_str(), line["scheme"].as_str()), (Some("http/1.1"), Some("http")));
    assert_eq!((line["user_agent"].as_str(), line["trace_id"].as_str()), (Some("curl/8 \"\u{e9}\""), Some(TRACE)));
    assert_eq!(line.get("query"), None);

    assert_eq!(ask("/b").header("traceparent", &format!("00-{TRACE}-00f067aa0ba902b7")).status(), 200);
    assert_eq!(gateway.log_line("/b")["trace_id"], Value::Null);
    for (path, source, scheme) in [("/near", "127.0.0.2", "https"), ("/strange", "127.0.0.1", "http")] {
        assert_eq!(ask(path).from(source).header("X-Forwarded-Proto", "https").status(), 200);
        assert_eq!(gateway.log_line(path)["scheme"], scheme);
    }
    let asked = Request::get(format!("http://{}/h2", gateway.address())).body(()).expect("a request");
    over_http2(&gateway, async |sender| ask_over_http2(&sender, asked, None).await.expect("an answer"));
    let line = gateway.log_line("/h2");
    assert_eq!((&line["protocol"], &line["user_agent"]), (&"h2".into(), &Value::Null));
}

#[test]
fn the_query_is_logged_only_where_that_is_wanted() {
    let origin = Origin::start();
    let gateway = logged(&origin, "log: {format: json, query: true}");
    assert_eq!(gateway.get("/a?next=%2Fb&c").status(), 200);
    assert_eq!(gateway.log_line("/a")["query"], "next=%2Fb&c");
    assert_eq!(gateway.get("/b").status(), 200);
    assert_eq!(gateway.log_line("/b").get("query"), None);
}

#[test]
fn denials_can_be_counted_by_key_on_all_gateways_of_a_store_and_names_stay_apart() {
    let (redis, origin) = (RedisServer::start(), Origin::start());
    let config = format!(
        "store: {{redis: {{url: \"{}\", timeout: 10s}}}}\nupstream: {}\nlimits: [{{name: user, key: param.user, rate: 1/hour}}]",
        redis.url(),
        origin.url()
    );
    let gateways: Vec<_> = (0..2).map(|_| Gateway::start(&config)).collect();
    let denied = |gateway: &Gateway, name: &str, path: &str| {
        // It passes, or is denied for what another gateway let pass.
        gateway.post("/before").form(&format!("user={name}")).send();
        assert_eq!(gateway.post(path).form(&format!("user={name}")).status(), 429);
        let line = gateway.log_line(path);
        [&line["key"], &line["key_masked"]].map(|field| field.as_str().expect("text").to_owned())
    };
    let [key, masked] = denied(&gateways[0], "alice", "/1");
    assert_eq!(denied(&gateways[1], "%20Alice", "/2"), [key.clone(), masked.clone()]);
    assert_eq!(without_digits(&masked), "param.user=a***");
    let [other, anna] = denied(&gateways[1], "anna", "/3");
    assert!(other != key && anna != masked && without_digits(&anna) == "param.user=a***", "{anna} {masked}");
    // It is not the name of a counter: a log does not help to find the key in Redis.
    assert!(!redis.cli(&["KEYS", "*"]).contains(&key));
}

#[test]
fn both_logs_are_written_in_the_schema_that_is_asked_for() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    let more = "routes: [{match: /x, limits: [{name: knocks, key: client_ip, rate: 1/hour, then: {ban: 1h}}]}]";
    let lines = |format: &str, find: &dyn Fn(&Value) -> bool| {
        gateway.write_config(format!("log: {{format: {format}}}\nupstream: {}\n{more}", origin.url()));
        let mut found = Vec::new();
        eventually("both logs have lines in that format", || {
            gateway.get("/x").status();
            let both = [gateway.stdout(), gateway.stderr()];
            let parsed =
                both.map(|lines| lines.iter().rev().filter_map(|line| serde_json::from_str(line).ok()).find(find));
            found = parsed.into_iter().flatten().collect();
            found.len() == 2
        });
        found
    };
    let ecs = lines("ecs", &|line| line["ecs.version"].is_string());
    assert!(ecs.iter().all(|line| line["@timestamp"].is_string() && line["message"].is_string()), "{ecs:?}");
    assert_eq!((&ecs[0]["url.path"], &ecs[1]["log.level"]), (&"/x".into(), &"info".into()));
    let otel = lines("otel", &|line| line["timeUnixNano"].is_string());
    assert!(
        otel.iter().all(|line| line["severityText"] == "INFO" && line["body"]["stringValue"].is_string()),
        "{otel:?}"
    );
    assert!(otel.iter().all(|line| line["attributes"].is_array()), "{otel:?}");
}

#[test]
fn every_log_has_one_word_for_time() {
    let origin = Origin::start();
    let gateway = logged(&origin, "audit: {file: audit.jsonl}");
    assert_eq!((gateway.get("/login").status(), gateway.get("/login").status()), (200, 429));
    gateway.log_line("/login");
    let audit = || std::fs::read_to_string(gateway.path("audit.jsonl")).unwrap_or_default();
    eventually("the denial is written", || audit().contains("denial"));
    let of_audit = audit().lines().map(str::to_owned).collect();
    for line in [gateway.stdout(), gateway.stderr(), of_audit].concat() {
        let line: Value = serde_json::from_str(&line).expect("JSON");
        assert!(line["time"].as_str().is_some_and(|time| time.ends_with('Z') && time.len() == 24), "{line}");
        assert_eq!(line.get("timestamp"), None);
    }
}

#[test]
fn a_listed_client_is_logged_as_listed() {
    let origin = Origin::start();
    let gateway = logged(&origin, "lists:\n  bad: {addresses: [127.0.0.2]}\naccess: {deny: [bad]}");
    assert_eq!(gateway.get("/x").from("127.0.0.2").status(), 403);
    let line = gateway.log_line("/x");
    assert_eq!((&line["decision"], &line["limit"], &line["list"]), (&json!("listed"), &Value::Null, &json!("bad")));
}

#[test]
fn no_secret_of_a_request_is_written() {
    let origin = Origin::start();
    let gateway = logged(&origin, "limits:\n  - {name: user, key: [param.user, bearer, cookie.s], rate: 1/hour}");
    let request = gateway
        .post("/secret?token=geheim1")
        .header("Authorization", "Bearer geheim2")
        .header("Cookie", "s=geheim3")
        .form("user=geheim4&password=geheim5");
    assert_eq!(request.status(), 200);
    assert_eq!(request.status(), 429);
    gateway.log_line("/secret");
    let everything = format!("{}\n{}", gateway.stdout().join("\n"), gateway.stderr().join("\n"));
    assert!(!everything.contains("geheim"), "{everything}");
}

#[test]
fn what_a_client_sends_cannot_forge_a_line() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    assert_eq!(gateway.get("/a\"},{\"b").header("User-Agent", "\"},{\"b\\").status(), 200);
    assert_eq!(gateway.get("/after").status(), 200);
    gateway.log_line("/after");
    for line in gateway.stdout() {
        assert!(serde_json::from_str::<Value>(&line).is_ok_and(|line| line["time"].is_string()), "{line}");
    }
    let line = gateway.log_line("/a\"},{\"b");
    assert_eq!(line["user_agent"], "\"},{\"b\\");
}

#[test]
fn requests_are_logged_only_where_that_is_wanted() {
    let origin = Origin::start();
    let gateway = logged(&origin, "log: {format: json, requests: false}");
    assert_eq!(gateway.get("/x").status(), 200);
    assert_eq!(gateway.get("/login").status(), 200);
    assert!(gateway.stdout().is_empty(), "{:?}", gateway.stdout());
}

#[test]
fn people_get_lines_they_can_read() {
    let origin = Origin::start();
    let gateway = logged(&origin, "");
    gateway.write_config(format!("log: {{format: human}}\nupstream: {}", origin.url()));
    eventually("a line for people", || {
        gateway.get("/readable").status();
        gateway
            .stdout()
            .iter()
            .any(|line| line.contains("/readable") && !line.starts_with('{') && line.contains(" 200 "))
    });
}

#[test]
fn an_id_that_the_application_has_for_a_request_is_logged_beside_ours_and_not_sent() {
    let origin = Origin::answering(|request| {
        let ours = request.header("x-request-id").unwrap_or_default().to_owned();
        let id = if request.target == "/same" { &*ours } else { "of-the-application" };
        Answer::new(200, &[("X-Request-ID", id)], "ok")
    });
    let gateway = Gateway::start(format!("upstream: {}", origin.url()));
    for (path, logged) in [("/other", json!("of-the-application")), ("/same", Value::Null)] {
        let answer = gateway.get(path).send();
        let line = gateway.log_line(path);
        assert_eq!(answer.headers.all("x-request-id"), [line["request_id"].as_str().expect("an id")]);
        assert_eq!(line["upstream_request_id"], logged);
    }
}
