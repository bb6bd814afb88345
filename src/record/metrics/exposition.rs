//! The two text formats of metrics.

/// They differ in how a counter is introduced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exposition {
    OpenMetrics,
    Prometheus,
}

/// `OpenMetrics` introduces a counter by its name without `_total`. The older Prometheus format uses the name with it.
pub(super) fn as_prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + 512);
    let mut help = None;
    for line in open_metrics.lines() {
        if line.starts_with("# HELP ") {
            help = Some(line);
            continue;
        }
        let counter = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter"));
        if let Some(line) = help.take() {
            match (counter, line.splitn(4, ' ').last()) {
                (Some(name), Some(words)) => text.extend(["# HELP ", name, "_total ", words, "\n"]),
                _ => text.extend([line, "\n"]),
            }
        }
        match counter {
            Some(name) => text.extend(["# TYPE ", name, "_total counter\n"]),
            None if line == "# EOF" => {}
            None => text.extend([line, "\n"]),
        }
    }
    text
}
