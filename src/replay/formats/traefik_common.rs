//! Traefik's common format: the combined one, and what Traefik adds.

use std::time::Duration;

use super::LogLine;
use super::combined;
use super::scanner::Scanner;
use crate::replay::LoggedValue;

/// `... "curl/8.5.0" 4711 "web@docker" "http://10.0.0.5:80" 3ms` after the fields of the combined format.
pub(super) fn read(line: &[u8]) -> Option<LogLine> {
    let mut line = Scanner::new(line);
    let read = combined::read_before(&mut line)?;
    if matches!(read, LogLine::NoRequest) {
        line.quoted()?;
        line.quoted()?;
    }
    let count = line.word()?;
    line.quoted()?;
    line.quoted()?;
    let duration = line.text_word()?.strip_suffix("ms")?;
    if !(count == b"-" || count.iter().all(u8::is_ascii_digit)) {
        return None;
    }
    let millis: u64 = duration.parse().ok()?;
    Some(match read {
        other @ (LogLine::NoRequest | LogLine::DescriptorCall) => other,
        LogLine::Request(mut request) => {
            request.duration = Some(Duration::from_millis(millis));
            // Headers stand there as `-` by default, whether or not they were sent.
            request.headers.retain(|header| header.value != LoggedValue::NotSent);
            LogLine::Request(request)
        }
    })
}
