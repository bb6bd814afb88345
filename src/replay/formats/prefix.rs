//! The text that syslog and containers write around a line.

use std::borrow::Cow;
use std::mem;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::replay::formats::scanner;

/// The content of one such layer.
#[derive(Debug)]
pub(super) struct Layer<'l> {
    pub(super) text: Cow<'l, [u8]>,
    /// `None`: it is not of a container.
    pub(super) stream: Option<Stream>,
    /// The rest of the line follows in the same stream.
    pub(super) is_piece: bool,
}

/// The output stream of a container. Pieces of lines of both may alternate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stream {
    Output,
    Errors,
}

/// Takes one such layer off. `None`: there is none.
pub(super) fn without(line: &[u8]) -> Option<Layer<'_>> {
    if line.first() == Some(&b'{') {
        return docker(line);
    }
    cri(line).or_else(|| {
        let text = Cow::Borrowed(syslog(line)?);
        Some(Layer { text, stream: None, is_piece: false })
    })
}

/// A line of Docker's driver json-file.
#[derive(Deserialize)]
struct DockerLine<'l> {
    #[serde(borrow)]
    log: Cow<'l, str>,
    #[serde(borrow)]
    stream: Cow<'l, str>,
}

/// The fields that Docker itself writes, and no fields of other programs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnDockerLine {
    #[serde(rename = "log")]
    _log: IgnoredAny,
    #[serde(rename = "stream")]
    _stream: IgnoredAny,
    #[serde(rename = "time")]
    _time: IgnoredAny,
    #[serde(rename = "attrs")]
    _attrs: Option<IgnoredAny>,
}

/// A piece has no line break at its end. Programs that read such files and write them anew drop it from every line.
fn docker(line: &[u8]) -> Option<Layer<'_>> {
    let DockerLine { log, stream } = serde_json::from_slice(line).ok()?;
    let stream = Stream::named(stream.as_bytes());
    let is_piece = stream.is_some() && !log.ends_with('\n') && serde_json::from_slice::<OwnDockerLine>(line).is_ok();
    let text = if is_piece { &*log } else { log.trim_end_matches(['\r', '\n']) };
    Some(Layer { text: Cow::Owned(text.as_bytes().to_vec()), stream, is_piece })
}

/// `2026-11-21T07:58:52.123456789Z stdout F ...`, as containers of Kubernetes write. The tag `P` marks a piece.
fn cri(line: &[u8]) -> Option<Layer<'_>> {
    let (moment, rest) = word(line)?;
    let (stream, rest) = word(rest)?;
    let (tag, rest) = word(rest)?;
    scanner::of_rfc3339(str::from_utf8(moment).ok()?)?;
    let is_piece = match tag.split(|byte| *byte == b':').next()? {
        b"F" => false,
        b"P" => true,
        _ => return None,
    };
    Some(Layer { text: Cow::Borrowed(rest), stream: Some(Stream::named(stream)?), is_piece })
}

impl Stream {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"stdout" => Some(Self::Output),
            b"stderr" => Some(Self::Errors),
            _ => None,
        }
    }
}

/// The message of a line of RFC 5424 or RFC 3164, with its priority or without.
fn syslog(line: &[u8]) -> Option<&[u8]> {
    let line = match line.strip_prefix(b"<") {
        Some(rest) => {
            let end = memchr::memchr(b'>', rest).filter(|end| (1..=3).contains(end))?;
            rest[..end].iter().all(u8::is_ascii_digit).then_some(&rest[end + 1..])?
        }
        None => line,
    };
    match line.strip_prefix(b"1 ") {
        Some(rest) => rfc_5424(rest),
        None => rfc_3164(line),
    }
}

/// `2026-11-21T07:58:52Z web nginx 812 - [meta seq="1"] ...` after the version.
fn rfc_5424(line: &[u8]) -> Option<&[u8]> {
    let (moment, mut rest) = word(line)?;
    if moment != b"-" {
        scanner::of_rfc3339(str::from_utf8(moment).ok()?)?;
    }
    // Host, application, process and kind of message.
    for _ in 0..4 {
        rest = word(rest)?.1;
    }
    let rest = match rest.strip_prefix(b"-") {
        Some(rest) => rest,
        None => after_elements(rest)?,
    };
    let message = rest.strip_prefix(b" ")?;
    Some(message.strip_prefix("\u{feff}".as_bytes()).unwrap_or(message))
}

/// Skips `[id name="value"]`, any number of them. A value may hold `\]` and `\"`.
fn after_elements(mut rest: &[u8]) -> Option<&[u8]> {
    rest.strip_prefix(b"[")?;
    while let Some(element) = rest.strip_prefix(b"[") {
        let (mut at, mut is_quoted) = (0, false);
        loop {
            match element.get(at)? {
                b'\\' => at += 1,
                b'"' => is_quoted = !is_quoted,
                b']' if !is_quoted => break,
                _ => {}
            }
            at += 1;
        }
        rest = &element[at + 1..];
    }
    Some(rest)
}

/// `Nov 21 07:58:52 web nginx[812]: ...`, or with a moment of RFC 3339, as newer daemons write it.
fn rfc_3164(line: &[u8]) -> Option<&[u8]> {
    let (first, rest) = word(line)?;
    let rest = if scanner::of_rfc3339(str::from_utf8(first).ok()?).is_some() {
        rest
    } else {
        if !scanner::is_month(first) {
            return None;
        }
        // A day below 10 has a space before it.
        let (day, rest) = word(rest.trim_ascii_start())?;
        let (clock, rest) = word(rest)?;
        let is_clock = clock.len() >= 8 && clock[2] == b':' && clock[5] == b':';
        (is_clock && day.iter().all(u8::is_ascii_digit)).then_some(rest)?
    };
    let (host, after_host) = word(rest)?;
    // nginx leaves the host out with `nohostname`.
    if host.ends_with(b":") {
        return Some(after_host.trim_ascii_start());
    }
    let (tag, message) = word(after_host)?;
    tag.ends_with(b":").then(|| message.trim_ascii_start())
}

fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    Some((&line[..space], &line[space + 1..]))
}

// Joins the lines that containers write in pieces: Docker splits them after 16 KiB, and the runtimes of Kubernetes do too.

/// Longer than any line of a request within `max_header_bytes`.
pub(in crate::replay) const MAX_LINE: usize = 256 * 1024;

/// The beginnings of lines whose rest has not come yet.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// A line, joined where it was in pieces.
#[derive(Debug)]
pub(super) struct JoinedLine<'l> {
    pub(super) text: Cow<'l, [u8]>,
    pub(super) is_too_long: bool,
}

impl Pieces {
    /// The line that ends with this layer. `None`: more of it follows.
    pub(super) fn join<'l>(&mut self, layer: Layer<'l>) -> Option<JoinedLine<'l>> {
        let Some(stream) = layer.stream else { return Some(JoinedLine::new(layer.text)) };
        let beginning = match stream {
            Stream::Output => &mut self.output,
            Stream::Errors => &mut self.errors,
        };
        if !layer.is_piece && beginning.is_empty() {
            return Some(JoinedLine::new(layer.text));
        }
        // One byte more than the bound tells that a line is longer.
        let room = MAX_LINE + 1 - beginning.len();
        beginning.extend_from_slice(&layer.text[..layer.text.len().min(room)]);
        (!layer.is_piece).then(|| JoinedLine::new(Cow::Owned(mem::take(beginning))))
    }

    /// A line whose rest did not come before the end of the file.
    pub(super) fn rest(&mut self) -> Option<JoinedLine<'static>> {
        let beginning = [&mut self.output, &mut self.errors].into_iter().find(|beginning| !beginning.is_empty())?;
        Some(JoinedLine::new(Cow::Owned(mem::take(beginning))))
    }
}

impl<'l> JoinedLine<'l> {
    fn new(text: Cow<'l, [u8]>) -> Self {
        let is_too_long = text.len() > MAX_LINE;
        Self { text, is_too_long }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is within one layer. What is a piece ends in `...`.
    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let found = without(line.as_bytes()).map(|Layer { text, is_piece, .. }| {
            format!("{}{}", String::from_utf8_lossy(&text), if is_piece { "..." } else { "" })
        });
        assert_eq!(found.as_deref(), expected, "{line}");
    }

    #[test]
    fn a_layer_is_told_from_a_line_and_taken_off() {
        check("<190>Nov 21 07:58:52 web nginx: a b", Some("a b"));
        check("Nov  1 07:58:52 web nginx[812]: a b", Some("a b"));
        check("<190>Nov 21 07:58:52 nginx: a b", Some("a b"));
        check("2026-11-21T07:58:52.123+01:00 web nginx: a b", Some("a b"));
        check("<190>1 2026-11-21T07:58:52Z web nginx 812 - - a b", Some("a b"));
        check("<190>1 - - - - - [a b=\"]\\\"\"][c] \u{feff}a b", Some("a b"));
        check("2026-11-21T07:58:52.123456789Z stdout F a b", Some("a b"));
        check("2026-11-21T07:58:52.123456789Z stderr P:x a b", Some("a b..."));
        check(r#"{"log":"a \"b\"\n","stream":"stdout","time":"2026-11-21T07:58:52Z"}"#, Some("a \"b\""));
        check(r#"{"log":"a \"b\"","stream":"stdout","time":"2026-11-21T07:58:52Z"}"#, Some("a \"b\"..."));
        check(r#"{"log":"a","stream":"stdout","attrs":{"tag":"web"},"time":"2026-11-21T07:58:52Z"}"#, Some("a..."));
        // As a program has written it that reads such files and knows of their pieces.
        check(r#"{"log":"a","stream":"stdout","time":"2026-11-21T07:58:52Z","kubernetes":{}}"#, Some("a"));
        for line in
            ["a b", "", "{}", "<190>", "<1904>a b", "Nov 21", "2026-11-21T07:58:52Z stdout X a", "<1>1 - - - - - [a"]
        {
            check(line, None);
        }
    }
}
