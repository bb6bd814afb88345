//! The alerts in `config/prometheus`: promtool takes them, and they use what a gateway has.

use std::fs;
use std::path::Path;

use crate::metric_names::MetricNames;
use crate::tool::run;

const FOLDER: &str = "config/prometheus";

#[test]
fn promtool_takes_the_alerts_and_their_tests_pass() {
    for arguments in [["check", "rules", "rules.yaml"], ["test", "rules", "rules_test.yaml"]] {
        let said = run(Path::new(FOLDER), "promtool", &arguments);
        assert_eq!(said.code, Some(0), "{}{}", said.text, said.errors);
        assert!(said.text.contains("SUCCESS"), "{}", said.text);
    }
}

#[test]
fn every_alert_uses_metrics_that_exist_and_has_a_test() {
    let rules = fs::read_to_string(format!("{FOLDER}/rules.yaml")).expect("the alerts");
    let tests = fs::read_to_string(format!("{FOLDER}/rules_test.yaml")).expect("their tests");
    let names = MetricNames::of_the_book();
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() >= 7, "{}", alerts.len());
    for alert in alerts {
        let (name, rest) = alert.split_once('\n').expect("a rule");
        let (_, query) = rest.split_once("expr:").expect("a query");
        let query = query.split("\n        for:").next().and_then(|text| text.split("\n        labels:").next());
        names.check(query.expect("a query"));
        for part in ["labels: {severity: ", "summary: ", "description: "] {
            assert!(rest.contains(part), "{name} has no {part}");
        }
        let tested = tests.split(&format!("alertname: {name}\n        exp_alerts:\n")).count();
        assert!(tested >= 2, "no test expects {name} to fire");
    }
}
