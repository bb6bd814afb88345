//! The dashboard in `config/grafana`: its queries use what a gateway has, and it can be imported anywhere.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::metric_names::MetricNames;
use crate::tool::run;

fn dashboard() -> Value {
    let text = fs::read_to_string("config/grafana/portcullis.json").expect("the dashboard");
    serde_json::from_str(&text).expect("JSON")
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn queries(dashboard: &Value) -> Vec<String> {
    let targets = list(dashboard, "panels").iter().flat_map(|panel| list(panel, "targets"));
    // The marks on all panels; the one that Grafana has by itself asks nothing.
    let marks = list(&dashboard["annotations"], "list").iter().filter(|mark| mark["builtIn"].is_null());
    targets.chain(marks).map(|target| target["expr"].as_str().expect("a query").to_owned()).collect()
}

#[test]
fn every_query_uses_metrics_that_exist_for_the_job_and_the_gateway_that_were_chosen() {
    let names = MetricNames::of_the_book();
    let dashboard = dashboard();
    let mut shown = BTreeSet::new();
    for query in queries(&dashboard) {
        let metrics = names.check(&query);
        assert_eq!(
            query.matches('{').count(),
            query.matches("{job=~\"$job\", instance=~\"$gateway\"").count(),
            "{query}"
        );
        shown.extend(metrics);
    }
    for name in [
        "portcullis_requests_total",
        "portcullis_limit_decisions_total",
        "portcullis_outcomes_total",
        "portcullis_signed_in_after_failures_total",
        "portcullis_verdict",
        "portcullis_lockdown",
        "portcullis_list_age_seconds",
        "portcullis_request_duration_seconds_bucket",
        "portcullis_decision_duration_seconds_bucket",
        "portcullis_store_up",
        "portcullis_store_round_trip_seconds_bucket",
        "portcullis_store_errors_total",
        "portcullis_upstream_healthy",
        "portcullis_upstream_errors_total",
        "portcullis_bans",
        "portcullis_held_requests",
        "portcullis_connections",
        "portcullis_config_reloads_total",
        "portcullis_certificate_expiry_seconds",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
    ] {
        assert!(shown.contains(name), "{name} is on no panel");
    }
}

/// promtool parses each query, with numbers for the variables of Grafana.
#[test]
fn every_query_is_promql() {
    let mut rules = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
    for (number, query) in queries(&dashboard()).iter().enumerate() {
        let query = query.replace("$__rate_interval", "5m").replace("$__range", "1h");
        let query = serde_json::to_string(&query).expect("a string");
        let _ = writeln!(rules, "      - {{record: \"query_{number}\", expr: {query}}}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rules.yaml"), rules).expect("a file");
    let said = run(folder.path(), "promtool", &["check", "rules", "rules.yaml"]);
    assert_eq!(said.code, Some(0), "{}{}", said.text, said.errors);
}

#[test]
fn it_names_no_data_source_of_another_grafana() {
    fn walk(value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(source) = fields.get("datasource") {
                    let uid = source["uid"].as_str().expect("a data source by uid");
                    assert!(["${datasource}", "-- Grafana --"].contains(&uid), "{uid}");
                }
                assert!(!fields.contains_key("__inputs"), "it asks for a choice that its variables offer");
                fields.values().for_each(walk);
            }
            Value::Array(values) => values.iter().for_each(walk),
            _ => {}
        }
    }
    walk(&dashboard());
}

#[test]
fn ids_differ_and_panels_do_not_overlap() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 39));
    assert_eq!(dashboard["id"], Value::Null, "an id belongs to one Grafana");
    let variables: Vec<_> = list(&dashboard["templating"], "list").iter().map(|it| it["name"].as_str()).collect();
    assert_eq!(variables, [Some("datasource"), Some("job"), Some("gateway")]);
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in list(&dashboard, "panels") {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{panel}");
        let title = panel["title"].as_str().expect("a title");
        assert!(panel["type"] == "row" || panel["description"].is_string(), "{title} says nothing about itself");
        let side = |name: &str| panel["gridPos"][name].as_u64().expect("a number");
        for x in side("x")..side("x") + side("w") {
            assert!(x < 24, "{title} is too wide");
            for y in side("y")..side("y") + side("h") {
                assert!(cells.insert((x, y)), "{title} overlaps another panel");
            }
        }
        let references: BTreeSet<_> = list(panel, "targets").iter().map(|it| it["refId"].as_str()).collect();
        assert_eq!(references.len(), list(panel, "targets").len(), "{title}: two queries have one name");
    }
}
