use super::*;
use crate::record::ListGauge;

#[test]
fn counters_are_exposed_under_their_documented_names() {
    let metrics = Metrics::new();
    metrics.requests(&CountedRoute::Named("login".into()), "denied", "4xx").inc();
    metrics.limit_decisions(&"login-pace".into(), "denied").inc();
    metrics.upstream_errors("app", "10.0.1.5:8000", "connect").inc();
    metrics.count_reload(ReloadResult::Failure);

    let text = metrics.expose(gauges(), Exposition::Prometheus);

    for line in [
        "# TYPE portcullis_requests_total counter",
        "portcullis_requests_total{route=\"login\",decision=\"denied\",status=\"4xx\"} 1",
        "portcullis_limit_decisions_total{limit=\"login-pace\",decision=\"denied\"} 1",
        "portcullis_upstream_errors_total{upstream=\"app\",server=\"10.0.1.5:8000\",cause=\"connect\"} 1",
        "portcullis_upstream_healthy{upstream=\"app\",server=\"10.0.1.5:8000\"} 1",
        "portcullis_store_up{kind=\"memory\"} 1",
        "portcullis_store_keys{kind=\"memory\"} 7",
        "portcullis_store_part{kind=\"memory\"} 0.25",
        "portcullis_list_entries{list=\"community\"} 12",
        "portcullis_list_source_up{list=\"community\"} 0",
        "portcullis_lockdown{limit=\"login-lockdown\"} 1",
        "portcullis_connections 3",
        "portcullis_held_requests 2",
        "portcullis_config_reloads_total{result=\"failure\"} 1",
        "portcullis_config_reloads_total{result=\"success\"} 0",
        "portcullis_config_last_reload_success 0",
    ] {
        assert!(text.lines().any(|found| found == line), "no line `{line}` in\n{text}");
    }
}

#[test]
fn the_prometheus_format_introduces_a_counter_by_its_name_with_total() {
    let text = Metrics::new().expose(gauges(), Exposition::Prometheus);
    assert!(text.contains("# HELP portcullis_config_reloads_total Reloads of the configuration"), "{text}");
    assert!(!text.contains("# EOF"), "{text}");
}

#[test]
fn open_metrics_ends_with_eof() {
    let text = Metrics::new().expose(gauges(), Exposition::OpenMetrics);
    assert!(text.contains("# TYPE portcullis_config_reloads counter\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn a_label_cannot_break_out_of_its_quotes() {
    let metrics = Metrics::new();
    metrics.requests(&CountedRoute::Named("a\"b\\c\nd".into()), "allowed", "2xx").inc();
    let text = metrics.expose(gauges(), Exposition::OpenMetrics);
    assert!(text.contains(r#"route="a\"b\\c\nd""#), "{text}");
}

#[test]
fn a_removed_server_certificate_or_list_is_no_longer_reported() {
    let metrics = Metrics::new();
    metrics.expose(gauges(), Exposition::OpenMetrics);
    let fewer = Gauges { servers: Vec::new(), certificates: Vec::new(), lists: Vec::new(), ..gauges() };
    let text = metrics.expose(fewer, Exposition::OpenMetrics);
    assert!(!text.contains("10.0.1.5") && !text.contains("a.test") && !text.contains("community"), "{text}");
}

fn gauges() -> Gauges {
    Gauges {
        routes: Arc::default(),
        held: 2,
        rejected_connections: 4,
        connections: 3,
        bans: 2,
        sessions: 5,
        store: "memory",
        store_up: true,
        store_keys: 7,
        store_part: Some(0.25),
        servers: vec![("app".into(), "10.0.1.5:8000".into(), true)],
        dropped_lines: 0,
        faults: Vec::new(),
        gateway: Arc::new("eu-1".to_owned()),
        verdict: vec![("well", false), ("attack", true)],
        lockdowns: vec![("login-lockdown".into(), true)],
        lists: vec![ListGauge {
            name: "community".into(),
            source: "http://127.0.0.1:8080".to_owned(),
            entries: 12,
            answered: None,
            failure: None,
        }],
        certificates: vec![("a.test".into(), 1_924_992_000)],
    }
}
