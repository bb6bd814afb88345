//! Bad input on every operation of the admin API: a problem document, and nothing has changed. The operations are those of the
//! description, so that no new one is left out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{ApiDescription, Gateway, Origin, Request, Response};

const LIMITS: &str = "
limits:
  - {name: pace, key: client_ip, rate: 5/hour, then: {ban: [1h, 2h]}}
  - {name: guessing, key: client_ip, distinct: param.username, rate: 9/hour}
";

/// A gateway of which something is known: a ban, and a request that was counted.
pub(crate) struct Site {
    pub(crate) gateway: Gateway,
    pub(crate) description: ApiDescription,
    ban: String,
    _origin: Origin,
}

impl Site {
    pub(crate) fn start() -> Self {
        let origin = Origin::start();
        let config = format!("admin: {{address: 127.0.0.1:0}}\nupstream: {}\n{LIMITS}", origin.url());
        let gateway = Gateway::start(config);
        let description = ApiDescription::of(&gateway);
        assert_eq!(gateway.get("/").status(), 200);
        let ban = gateway.admin_request("POST", "/api/v1/bans").json(GOOD_BAN).send();
        assert_eq!(ban.status, 201, "{}", ban.text());
        let ban = ban.json()["id"].as_str().expect("an id").to_owned();
        Self { gateway, description, ban, _origin: origin }
    }

    /// A target of this path that answers a good request.
    pub(crate) fn target(&self, path: &str) -> String {
        path.replace("{name}", "pace").replace("{id}", &self.ban)
    }

    pub(crate) fn ask(&self, method: &str, target: &str) -> Request {
        self.gateway.admin_request(method, target)
    }

    /// Everything that a request to the API can change.
    pub(crate) fn state(&self) -> Value {
        let get = |path: &str| self.ask("GET", path).send().json();
        let configuration = get("/api/v1/status")["configuration"].clone();
        let key = get("/api/v1/limits/pace/state?client_ip=127.0.0.1")["rates"][0]["remaining"].clone();
        let guesses = get("/api/v1/limits/guessing/state?client_ip=127.0.0.1")["rates"][0]["remaining"].clone();
        json!([get("/api/v1/bans"), get("/api/v1/limits"), configuration, key, guesses])
    }

    /// Every operation that refuses what it does not take: its method and path.
    pub(crate) fn strict_operations(&self) -> Vec<(String, String)> {
        let files = ["/healthz", "/readyz", "/metrics", "/", "/page/{name}"];
        let operations = self.description.operations().into_iter().map(|(method, path, _)| (method, path));
        let strict: Vec<_> = operations.filter(|(_, path)| !files.contains(&&**path)).collect();
        assert!(strict.len() > 15, "{strict:?}");
        strict
    }

    /// Checks that the answer is a problem document of one of these statuses, as the operation describes it.
    #[track_caller]
    pub(crate) fn is_refused(&self, method: &str, path: &str, request: &Request, statuses: &[u16]) {
        let response = request.send();
        let shown = String::from_utf8_lossy(&request.bytes()).chars().take(200).collect::<String>();
        assert!(statuses.contains(&response.status), "{}: {shown}: {}", response.status, response.text());
        is_problem(&response);
        self.description.check(method, path, &response);
    }
}

const GOOD_BAN: &str = r#"{"address": "198.51.100.7", "for": "1h", "reason": "scans"}"#;

#[track_caller]
pub(crate) fn is_problem(response: &Response) {
    assert_eq!(response.header("content-type"), Some("application/problem+json"), "{}", response.text());
    assert_eq!(response.json()["status"], response.status);
    assert!(response.json()["detail"].as_str().is_some_and(|detail| detail.len() < 1000), "{}", response.text());
    assert!(!response.text().contains("hunter2"), "{}", response.text());
}

/// The query that a good request to this path needs.
pub(crate) fn good_query(method: &str, path: &str) -> &'static str {
    match (method, path) {
        (_, "/api/v1/limits/{name}/state" | "/api/v1/limits/{name}/hit") => "client_ip=127.0.0.1",
        ("DELETE", "/api/v1/bans") => "address=198.51.100.7",
        _ => "",
    }
}

#[test]
fn a_method_that_a_path_does_not_answer_is_405_with_those_that_it_does() {
    let site = Site::start();
    let before = site.state();
    let mut answered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (method, path, _) in site.description.operations() {
        let methods = answered.entry(path).or_default();
        if method == "GET" {
            methods.insert("HEAD".to_owned());
        }
        methods.insert(method);
    }
    for (path, answered) in &answered {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] {
            if answered.contains(method) {
                continue;
            }
            let response = site.ask(method, &site.target(path)).send();
            assert_eq!(response.status, 405, "{method} {path}");
            if method != "HEAD" {
                is_problem(&response);
                assert!(response.text().contains(&format!("does not answer {method}")), "{}", response.text());
            }
            let allowed = response.header("allow").expect("the methods that it answers");
            let allowed: BTreeSet<_> = allowed.split(',').map(|method| method.trim().to_owned()).collect();
            assert_eq!(&allowed, answered, "{method} {path}");
        }
    }
    assert_eq!(site.state(), before);
}

#[test]
fn a_parameter_that_is_wrong_changes_nothing() {
    let site = Site::start();
    let before = site.state();
    let long = "9".repeat(8000);
    for (method, path) in site.strict_operations() {
        let good = good_query(&method, &path);
        let refuse = |query: &str, statuses: &[u16]| {
            let separator = if good.is_empty() || query.starts_with('!') { "" } else { "&" };
            let good = if query.starts_with('!') { "" } else { good };
            let target = format!("{}?{good}{separator}{}", site.target(&path), query.trim_start_matches('!'));
            site.is_refused(&method, &path, &site.ask(&method, &target), statuses);
        };
        refuse("nothing=1", &[400]);
        refuse("nothing", &[400]);
        refuse("nothing=1&nothing=1", &[400]);
        refuse("%ff=%fe", &[400]);
        refuse("nothing=%00", &[400]);
        refuse(&format!("{long}={long}").chars().take(12_000).collect::<String>(), &[400]);
        for (name, schema) in site.description.query_parameters(&method, &path) {
            // The parts of a key stand for themselves.
            let (name, value) = if name == "parts" { ("client_ip", "127.0.0.1") } else { (&*name, "1") };
            refuse(&format!("!{name}={value}&{name}={value}"), &[400]);
            refuse(&format!("!{name}=%ff"), &[400]);
            refuse(&format!("!{name}={long}"), &[400, 404]);
            if schema["type"].to_string().contains("integer") {
                for wrong in ["", "-1", "0", "1.5", "1e3", "0x10", "%201", "one", "18446744073709551616"] {
                    refuse(&format!("{name}={wrong}"), &[400]);
                }
            }
        }
    }
    assert_eq!(site.state(), before);
}

#[test]
fn a_path_that_names_nothing_is_a_problem() {
    let site = Site::start();
    let before = site.state();
    let long = "x".repeat(8000);
    for (method, path) in site.strict_operations() {
        if !path.contains('{') {
            continue;
        }
        for name in ["%ff", "%00", "none", "..%2f..%2fetc%2fpasswd", "%3Cb%3E", &long] {
            let target = path.replace("{name}", name).replace("{id}", name);
            let target = format!("{target}?{}", good_query(&method, &path));
            let request = site.ask(&method, target.trim_end_matches('?'));
            site.is_refused(&method, &path, &request, &[400, 404]);
        }
    }
    for nothing in ["/api", "/api/v1", "/api/v1/bans/", "//api/v1/bans", "/api/v2/bans", "/page", "/%ff", "/<b>"] {
        for method in ["GET", "POST", "DELETE"] {
            let response = site.ask(method, nothing).send();
            assert_eq!(response.status, 404, "{method} {nothing}");
            is_problem(&response);
            assert!(response.text().contains("there is nothing at /"), "{}", response.text());
        }
    }
    assert_eq!(site.state(), before);
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let site = Site::start();
    let long = "x".repeat(20_000);
    assert_eq!(site.ask("GET", &format!("/api/v1/bans?{long}")).status(), 414);
    assert_eq!(site.ask("GET", "/api/v1/bans").header("X-Long", &long).status(), 431);
}

#[test]
fn bad_input_without_the_token_is_401_before_it_is_read() {
    let origin = Origin::start();
    let config = format!("admin: {{address: 127.0.0.1:0, token_file: token}}\nupstream: {}\n{LIMITS}", origin.url());
    let gateway = Gateway::with_files(config, &[("token", "a-token-of-this-test\n")]);
    let description = Site::start().description;
    for (method, path, is_public) in description.operations() {
        if is_public {
            continue;
        }
        let target = path.replace("{name}", "none").replace("{id}", "none");
        for request in [
            gateway.admin_request(&method, &format!("{target}?nothing=%ff")),
            gateway.admin_request(&method, &target).json("{"),
            gateway.admin_request(&method, &target).body("text/plain", "x".repeat(100_000)),
        ] {
            let response = request.send();
            assert_eq!(response.status, 401, "{method} {path}");
            is_problem(&response);
        }
    }
}
