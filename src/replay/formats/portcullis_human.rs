//! Our own request log in the format `human`.

use super::LogLine;
use super::portcullis::Line;
use super::scanner::Scanner;
use super::time;

/// `2026-11-21T07:58:52.123Z 198.51.100.7 GET example.com/a?b 200 allowed upstream=app 1.234ms id=4f`
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    let text = str::from_utf8(line).ok()?;
    let mut words = Scanner::new(text.as_bytes());
    let end = time::of_rfc3339(words.text_word()?)?;
    let client = words.text_word()?;
    let method = words.text_word()?;
    let target = words.text_word()?;
    let status = words.text_word()?;
    let decision = words.text_word()?;
    // A call about descriptors has a domain and no path.
    let (host, target) = target.split_at(target.find(['/', '*']).unwrap_or(target.len()));
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let mut line = Line {
        client: client.into(),
        method: method.into(),
        host: host.into(),
        path: path.into(),
        query: query.map(Into::into),
        decision: decision.into(),
        status: status.parse().ok(),
        ..Line::default()
    };
    while let Some(word) = words.text_word() {
        // The text of an error comes last, and is free.
        if word.starts_with("error=") {
            break;
        }
        if let Some(upstream) = word.strip_prefix("upstream=") {
            line.upstream = Some(upstream.into());
        } else if let Some(outcome) = word.strip_prefix("outcome=") {
            line.outcome = Some(outcome.into());
        } else if let Some(millis) = word.strip_suffix("ms").and_then(|millis| millis.parse().ok()) {
            line.duration_ms = Some(millis);
        }
    }
    line.read(end)
}
