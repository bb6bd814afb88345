//! The book lists every metric and every request of the admin API, and lists of decisions are whole.

use std::collections::BTreeSet;
use std::fs;

use portcullis::record::DecisionLabel;

use crate::page::{BOOK, Page};
use crate::support::{ApiDescription, Gateway};

#[test]
fn every_metric_is_in_the_table() {
    let names = fs::read_to_string("src/record/metrics/table.rs").expect("the names of the metrics");
    let names: Vec<&str> =
        names.split('"').filter(|text| text.starts_with("portcullis_") || text.starts_with("process_")).collect();
    let page = fs::read_to_string(format!("{BOOK}/observability.md")).expect("the page");
    for name in &names {
        let listed = page.contains(&format!("| `{name}` |")) || page.contains(&format!("| `{name}_total` |"));
        assert!(listed, "{name} is not in the table");
    }
    assert_eq!(
        page.matches("\n| `portcullis_").count() + page.matches("\n| `process_").count(),
        names.len(),
        "the table has names that are no metrics"
    );
}

#[test]
fn every_request_of_the_admin_api_is_listed() {
    let gateway = Gateway::start("admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:9");
    let operations = ApiDescription::of(&gateway).operations();
    let described: BTreeSet<String> = operations
        .into_iter()
        .map(|(method, path, _)| format!("{method} {}", path.replace("{id}", "ID").replace("{name}", "NAME")))
        .collect();
    let page = Page::read(format!("{BOOK}/admin-api.md"));
    let blocks = page.blocks.iter().filter(|block| block.language == "http");
    let lines = blocks.flat_map(|block| block.text.lines());
    let listed: BTreeSet<String> = lines.map(|line| plain(line.split('?').next().unwrap_or(line))).collect();
    assert_eq!(listed, described);
}

#[test]
fn where_decisions_are_listed_no_denial_is_missing() {
    let denials: Vec<&str> =
        DecisionLabel::ALL.into_iter().filter(|decision| decision.is_denial()).map(DecisionLabel::as_str).collect();
    for path in [
        "config/grafana/portcullis.json",
        "config/prometheus/rules.yaml",
        "docs/src/admin-api.md",
        "docs/src/observability.md",
        "src/admin/page/history.js",
        "src/admin/page/requests.js",
    ] {
        let text = fs::read_to_string(path).expect("a file that lists decisions");
        let is_list = |line: &&str| ["listed", "banned", "tarpitted"].iter().all(|word| line.contains(word));
        let lists: Vec<&str> = text.lines().filter(is_list).collect();
        assert!(!lists.is_empty(), "{path} lists no decisions");
        for line in lists {
            let missing = denials.iter().find(|denial| !line.contains(**denial));
            assert_eq!(missing, None, "{path}: {line}");
        }
    }
}

/// With one space between method and path.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
