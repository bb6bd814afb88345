//! The metrics of a gateway and their labels, for queries that must use no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support::{Gateway, Origin, Request};

/// The labels that Prometheus adds, and the bound of a bucket.
const ADDED: [&str; 3] = ["job", "instance", "le"];

/// Words of a query before a list of labels.
const LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// The labels of each metric.
#[derive(Debug)]
pub(crate) struct MetricNames(BTreeMap<String, BTreeSet<String>>);

impl MetricNames {
    /// From the table in the book, which a test of the documents compares with the sources.
    pub(crate) fn of_the_book() -> Self {
        let page = fs::read_to_string("docs/src/observability.md").expect("the page");
        let rows = page.lines().filter(|line| line.starts_with("| `portcullis_") || line.starts_with("| `process_"));
        let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let names = rows.map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            (words(cells[1]).remove(0), words(cells[2]).into_iter().collect())
        });
        Self(names.collect())
    }

    /// The labels of a metric. A histogram is asked for by the name of one of its parts.
    fn labels(&self, name: &str) -> Option<&BTreeSet<String>> {
        let whole = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
        self.0.get(name).or_else(|| self.0.get(whole?))
    }

    /// Panics where a query has a metric or a label that does not exist. Returns its metrics.
    #[track_caller]
    pub(crate) fn check(&self, query: &str) -> BTreeSet<String> {
        let (mut metrics, mut known) = (BTreeSet::new(), ADDED.map(str::to_owned).into_iter().collect::<BTreeSet<_>>());
        for name in identifiers(query) {
            if name.starts_with("portcullis_") || name.starts_with("process_") {
                let labels = self.labels(&name).unwrap_or_else(|| panic!("there is no metric {name}: {query}"));
                known.extend(labels.iter().cloned());
                metrics.insert(name);
            }
        }
        for label in labels_of(query) {
            assert!(known.contains(&label), "no metric here has the label {label}: {query}");
        }
        metrics
    }
}

/// The words of a query, without what stands in quotation marks.
fn identifiers(query: &str) -> Vec<String> {
    let outside: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = outside.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The labels in selectors, and in lists such as `by (route)`.
fn labels_of(query: &str) -> Vec<String> {
    let outside: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let selectors = outside.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
    let lists = LISTS.iter().flat_map(|word| {
        let start = format!(" {word} (");
        let pieces: Vec<String> = outside.split(&start).skip(1).map(str::to_owned).collect();
        pieces.into_iter().map(|rest| rest.split(')').next().unwrap_or_default().to_owned())
    });
    selectors.map(str::to_owned).chain(lists).flat_map(|names| identifiers(&names)).collect()
}

/// Each line of `/metrics`: its metric and its labels.
fn samples(text: &str) -> Vec<(String, BTreeSet<String>)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| {
        let end = line.find(['{', ' ']).expect("a value");
        (line[..end].to_owned(), labels_of(line).into_iter().filter(|label| label != "le").collect())
    });
    samples.collect()
}

#[test]
fn a_gateway_has_the_metrics_and_labels_of_the_book_alone() {
    let origin = Origin::start();
    let gateway = Gateway::start(format!(
        "admin: {{address: 127.0.0.1:0}}\nupstream: {}\nroutes:\n  - name: login\n    match: /login\n    outcome: {{success: {{status: 200}}}}\n    \
         limits: [{{name: pace, key: client_ip, rate: 1/hour}}]\n",
        origin.url()
    ));
    assert_eq!((gateway.get("/login").status(), gateway.get("/login").status()), (200, 429));
    let names = MetricNames::of_the_book();
    let text = Request::new(gateway.admin(), "GET", "/metrics").send().text();
    let samples = samples(&text);
    for (name, labels) in &samples {
        assert_eq!(names.labels(name), Some(labels), "{name}");
    }
    for name in ["portcullis_upstream_healthy", "portcullis_outcomes_total", "process_cpu_seconds_total"] {
        assert!(samples.iter().any(|(found, _)| found == name), "{name} is not in\n{text}");
    }
    // The values are those that the system has of the process.
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse::<f64>().ok()).unwrap_or_else(|| panic!("{name} in\n{text}"))
    };
    let resident = value("process_resident_memory_bytes");
    assert!(resident > 1e6 && resident < value("process_virtual_memory_bytes"), "{text}");
    assert!(value("process_open_fds") > 3.0 && value("process_open_fds") < value("process_max_fds"), "{text}");
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("later than 1970").as_secs_f64();
    assert!((now - 600.0..=now).contains(&value("process_start_time_seconds")), "{text}");
}

#[test]
fn a_query_with_a_wrong_name_or_label_is_found() {
    let names = MetricNames::of_the_book();
    assert_eq!(names.check("sum by (route) (rate(portcullis_requests_total{decision=\"x\"}[5m]))").len(), 1);
    for wrong in [
        "portcullis_request_total",
        "portcullis_requests_total{server=\"a\"}",
        "sum by (limit) (rate(portcullis_requests_total[5m]))",
        "process_threads",
    ] {
        assert!(std::panic::catch_unwind(|| names.check(wrong)).is_err(), "{wrong}");
    }
}
