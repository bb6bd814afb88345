//! The history of the admin API: what was counted in each ten seconds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Gateway, Origin, Request, eventually};

fn config(origin: &Origin, more: &str) -> String {
    format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nlists: {{abusers: {{addresses: [127.0.0.9]}}}}\n{more}routes:\n  \
         - name: login\n    match: /login\n    limits:\n      - {{name: pace, key: client_ip, rate: 2/hour}}\n      \
         - {{name: wide, key: [], rate: 2/hour}}\n",
        origin.url()
    )
}

fn ask(gateway: &Gateway, query: &str) -> Request {
    let path = format!("/api/v1/history{query}");
    Request::new(gateway.admin(), "GET", &path).host(&gateway.admin().to_string())
}

fn history(gateway: &Gateway, minutes: u64) -> Value {
    let response = ask(gateway, &format!("?minutes={minutes}")).send();
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

/// The sums over all steps, by name and decision, where they are not 0.
fn sums(of: &Value) -> BTreeMap<(String, String), u64> {
    let mut sums = BTreeMap::new();
    for (name, decisions) in of.as_object().expect("names") {
        for (decision, steps) in decisions.as_object().expect("decisions") {
            let sum = steps.as_array().expect("steps").iter().map(|step| step.as_u64().expect("a count")).sum();
            if sum > 0 {
                sums.insert((name.clone(), decision.clone()), sum);
            }
        }
    }
    sums
}

/// The same sums from the metrics.
fn metric(gateway: &Gateway, metric: &str, label: &str) -> BTreeMap<(String, String), u64> {
    let text = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with(metric)) {
        let of = |label: &str| line.split(&format!("{label}=\"")).nth(1)?.split('"').next().map(str::to_owned);
        let name = of(label).expect("the label").replace("none", "-");
        let count: u64 = line.rsplit(' ').next().expect("a count").parse().expect("a count");
        *sums.entry((name, of("decision").expect("a decision"))).or_default() += count;
    }
    sums
}

#[test]
fn the_history_adds_up_to_the_metrics_through_a_reload() {
    let origin = Origin::start();
    let gateway = Gateway::start(config(&origin, ""));
    let check = || {
        eventually("the last answers are counted", || {
            let history = history(&gateway, 60);
            sums(&history["routes"]) == metric(&gateway, "portcullis_requests_total", "route")
                && sums(&history["limits"]) == metric(&gateway, "portcullis_limit_decisions_total", "limit")
        });
        sums(&history(&gateway, 5)["limits"])
    };
    for _ in 0..5 {
        gateway.get("/login").status();
        gateway.get("/elsewhere").status();
    }
    let limits = check();
    let of = |limit: &str| limits[&(limit.to_owned(), "denied".to_owned())];
    assert_eq!((of("pace"), of("wide")), (3, 3), "a denial is counted for each limit that denies");

    gateway.reload(config(&origin, "access: {deny: [abusers]}\n"));
    for _ in 0..2 {
        gateway.get("/login").status();
    }
    assert_eq!(check()[&("pace".to_owned(), "denied".to_owned())], 5);
    let routes = sums(&history(&gateway, 1440)["routes"]);
    assert_eq!(routes[&("-".to_owned(), "allowed".to_owned())], 5);
    assert_eq!(routes[&("login".to_owned(), "denied".to_owned())], 5);
}

#[test]
fn a_takeover_and_a_restart_begin_anew_as_the_metrics_do() {
    let origin = Origin::start();
    let mut old = Gateway::start(config(&origin, ""));
    let counted = |gateway: &Gateway, times: u64| {
        eventually("the last answers are counted", || {
            let denied = ("login".to_owned(), "denied".to_owned());
            let routes = sums(&history(gateway, 60)["routes"]);
            routes == metric(gateway, "portcullis_requests_total", "route")
                && routes.get(&denied).copied().unwrap_or_default() == times
        });
    };
    for _ in 0..5 {
        old.get("/login").status();
    }
    counted(&old, 3);
    let mut new = old.successor();
    counted(&new, 0);
    // The counts of limits have moved, so that each is one denial more.
    for _ in 0..2 {
        assert_eq!(new.get("/login").status(), 429);
    }
    counted(&new, 2);
    old.ended();
    new.restart();
    counted(&new, 0);
}

#[test]
fn steps_are_ten_seconds_long_and_all_there() {
    let gateway = Gateway::start(config(&Origin::start(), ""));
    for (minutes, steps) in [(1, 6), (60, 360), (1440, 8640)] {
        let history = history(&gateway, minutes);
        assert_eq!(history["step_seconds"], 10);
        let from = history["from"].as_str().expect("a time");
        assert!(from.ends_with("0.000Z"), "{from}");
        for (of, decision) in [("routes", "allowed"), ("limits", "denied")] {
            for (name, decisions) in history[of].as_object().expect("names") {
                assert_eq!(decisions[decision].as_array().map(Vec::len), Some(steps), "{name}");
            }
        }
    }
    let names = |of: &Value| of.as_object().expect("names").keys().cloned().collect::<Vec<_>>();
    let history = history(&gateway, 1);
    assert_eq!(
        (names(&history["routes"]), names(&history["limits"])),
        (vec!["-".to_owned(), "login".to_owned()], vec!["pace".to_owned(), "wide".to_owned()])
    );
    assert_eq!(ask(&gateway, "").send().json()["routes"]["login"]["allowed"].as_array().map(Vec::len), Some(360));
    assert_eq!(ask(&gateway, "?minutes=1441").status(), 400);
}
