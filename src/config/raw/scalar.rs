//! Single values: texts, numbers, durations, sizes and addresses. The key decides the type of its value, quoted or not.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::{IntErrorKind, NonZeroU32};

use ipnet::IpNet;
use serde_json::{Value, json};

use super::grammar;
use super::grammar::Bounds;
use crate::config::diagnostic::Mistakes;
use crate::config::raw::field::not_implemented;
use crate::config::raw::forms::{BoundedValue, Form, InvalidValue, RawValue, Spanned, Text};
use crate::config::yaml::{Content, Node};
use crate::record::RouteSeries;
use crate::record::spans::{InvalidSampleRatio, SampleRatio};
use crate::rules::list::{InvalidNetwork, network};
use crate::store::any_store::Nodes;
use crate::words::glob::Glob;
use crate::words::units;
use crate::words::units::nearest;
use crate::words::word::Word;

/// A value that is one text.
pub trait ScalarValue: Sized {
    /// What is expected, as in "expected ..., found a list".
    const EXPECTED: &'static str;

    /// Keys of maps that a later version reads in its place.
    const LATER: &'static [&'static str] = &[];

    /// The help for a list or a map in its place.
    fn instead() -> String {
        "write one value, without brackets or dashes".to_owned()
    }

    fn parse(text: &str) -> Result<Self, InvalidValue>;

    /// What `parse` reads, also from the environment.
    fn schema() -> Value;
}

impl<T: ScalarValue> RawValue for Spanned<T> {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let Content::Scalar(text) = &node.content else {
            let later = T::LATER.iter().find(|key| node.has_key(key));
            let message = match later {
                Some(key) => not_implemented(key),
                None => format!("expected {}, found {}", T::EXPECTED, node.kind()),
            };
            mistakes.report(node.at, message, T::instead());
            return None;
        };
        match T::parse(text) {
            Ok(value) => Some(Self { value, at: node.at }),
            Err(problem) => {
                problem.report(node.at, mistakes);
                None
            }
        }
    }

    fn schema(_: &mut BTreeMap<&'static str, Value>) -> Value {
        T::schema()
    }
}

impl BoundedValue<Bounds> for Spanned<u64> {
    fn schema_within(_: &mut BTreeMap<&'static str, Value>, bounds: Bounds) -> Value {
        grammar::number(bounds)
    }
}

impl BoundedValue<Bounds> for Spanned<units::Span> {
    fn schema_within(_: &mut BTreeMap<&'static str, Value>, bounds: Bounds) -> Value {
        grammar::span(bounds)
    }
}

impl BoundedValue<Bounds> for Spanned<units::Size> {
    fn schema_within(_: &mut BTreeMap<&'static str, Value>, bounds: Bounds) -> Value {
        grammar::size(bounds)
    }
}

impl BoundedValue<Form> for Text {
    fn read_within(node: &Node, form: Form, mistakes: &mut Mistakes) -> Option<Self> {
        if !matches!(node.content, Content::Scalar(_)) {
            mistakes.report(node.at, format!("expected {}, found {}", form.what, node.kind()), form.instead);
            return None;
        }
        Self::read(node, mistakes)
    }

    fn schema_within(_: &mut BTreeMap<&'static str, Value>, form: Form) -> Value {
        let mut schema = grammar::text(form.title, &(form.pattern)());
        schema["examples"] = json!(form.examples);
        schema["type"] = json!(form.kinds);
        schema
    }
}

impl ScalarValue for String {
    const EXPECTED: &'static str = "a text";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        Ok(text.to_owned())
    }

    fn schema() -> Value {
        json!({ "type": ["string", "number", "boolean"] })
    }
}

impl ScalarValue for bool {
    const EXPECTED: &'static str = "`true` or `false`";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "true" | "True" | "TRUE" => Ok(true),
            "false" | "False" | "FALSE" => Ok(false),
            _ => Err(InvalidValue::with(format!("`{text}` is neither true nor false"), "write `true` or `false`")),
        }
    }

    fn schema() -> Value {
        let words = ["true", "True", "TRUE", "false", "False", "FALSE"];
        json!({
            "title": "`true` or `false`",
            "type": ["boolean", "string"],
            "pattern": grammar::or_variable(&words.join("|")),
        })
    }
}

impl ScalarValue for u64 {
    const EXPECTED: &'static str = "a number";
    const LATER: &'static [&'static str] = &["of", "answer"];

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidValue::with(
                format!("`{text}` is not a whole number"),
                "write digits only, such as `1`",
            ));
        }
        text.parse().map_err(|_| InvalidValue::with(format!("`{text}` is too large"), "write a smaller number"))
    }

    fn schema() -> Value {
        grammar::number(grammar::ANY)
    }
}

impl<T: Word> ScalarValue for T {
    const EXPECTED: &'static str = "one word";

    fn instead() -> String {
        let words: Vec<_> = T::WORDS.iter().map(|word| format!("`{word}`")).collect();
        format!("write one of {}", words.join(" "))
    }

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        T::of_word(text).ok_or_else(|| unknown_word(text, T::WORDS))
    }

    fn schema() -> Value {
        grammar::words(T::WORDS)
    }
}

/// The error for an unknown word.
fn unknown_word(text: &str, words: &[&str]) -> InvalidValue {
    /// What nginx, HAProxy and Caddy call the same.
    const OF_OTHERS: [(&str, &str); 5] = [
        ("ip_hash", "client_ip"),
        ("source", "client_ip"),
        ("least_conn", "least_requests"),
        ("leastconn", "least_requests"),
        ("warning", "warn"),
    ];
    let meant = OF_OTHERS.iter().find(|(word, ours)| *word == text && words.contains(ours)).map(|(_, ours)| *ours);
    let help = match meant.or_else(|| nearest(text, words)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write {}", either(words)),
    };
    if Glob::looks_like_glob(text) {
        return InvalidValue::of_glob(text, "a word", help);
    }
    InvalidValue::with(format!("unknown value `{text}`"), help)
}

/// `a`, `b` or `c`.
fn either(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

impl ScalarValue for Nodes {
    const EXPECTED: &'static str = "`auto` or a number";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let wrong =
            |message: String| InvalidValue::with(message, "write `auto`, or how many gateways there are, such as `2`");
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong(format!("`{text}` is neither `auto` nor a whole number")));
        }
        match text.parse::<u32>().map(NonZeroU32::new) {
            Ok(Some(nodes)) => Ok(Self::Fixed(nodes)),
            Ok(None) => Err(wrong("`0` is too small".to_owned())),
            Err(_) => Err(wrong(format!("`{text}` is too large"))),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "enum": ["auto"] }, grammar::number(grammar::COUNT)] })
    }
}

impl ScalarValue for RouteSeries {
    const EXPECTED: &'static str = "`off` or a number";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        if text == "off" {
            return Ok(Self::First(0));
        }
        let wrong = |message| InvalidValue::with(message, "write `off`, or how many routes have series, such as `100`");
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong(format!("`{text}` is neither `off` nor a whole number")));
        }
        match text.parse::<NonZeroU32>() {
            Ok(count) => Ok(Self::First(count.get() as usize)),
            Err(error) if *error.kind() == IntErrorKind::Zero => Err(wrong("`0` is too small".to_owned())),
            Err(_) => Err(wrong(format!("`{text}` is too large"))),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "enum": ["off"] }, grammar::number(grammar::COUNT)] })
    }
}

impl ScalarValue for SampleRatio {
    const EXPECTED: &'static str = "a share such as `0.01`";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(|error: InvalidSampleRatio| {
            InvalidValue::with(error.to_string(), "write one such as `0.01`, which is one request in a hundred")
        })
    }

    fn schema() -> Value {
        json!({
            "title": "share",
            "type": ["number", "string"],
            "minimum": 0,
            "maximum": 1,
            "pattern": grammar::or_variable(r"0+(?:\.[0-9]*)?|\.[0-9]+|0*1(?:\.0*)?"),
        })
    }
}

impl ScalarValue for units::Span {
    const EXPECTED: &'static str = "a duration such as `20s`";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(|error: units::InvalidSpan| InvalidValue::from(error))
    }

    fn schema() -> Value {
        grammar::span(grammar::ANY_TIME)
    }
}

impl ScalarValue for units::Size {
    const EXPECTED: &'static str = "a size such as `64KiB`";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(|error: units::InvalidSize| InvalidValue::from(error))
    }

    fn schema() -> Value {
        grammar::size(grammar::ANY)
    }
}

impl ScalarValue for SocketAddr {
    const EXPECTED: &'static str = "an address with a port";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        text.parse()
            .map_err(|_| InvalidValue::with(format!("`{text}` is not an address with a port"), socket_advice(text)))
    }

    fn schema() -> Value {
        let mut schema = grammar::text("address with port", &grammar::socket_address());
        schema["examples"] = json!(["0.0.0.0:8080", "[::]:8080"]);
        schema
    }
}

/// The help for a text that is not an address with a port.
fn socket_advice(text: &str) -> String {
    // What nginx has behind an address, and what is around one in a URL.
    let of_others = text.split_once("://").map_or(text, |(_, rest)| rest);
    let first = of_others.split_whitespace().next().unwrap_or_default().trim_end_matches([';', '/']);
    if first != text && !first.is_empty() {
        return if first.parse::<SocketAddr>().is_ok() { format!("write `{first}`") } else { socket_advice(first) };
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<std::net::IpAddr>() {
        return format!("a port is missing: write `{}`", SocketAddr::new(address, 8080));
    }
    let port = text.trim_start_matches(['*', ':']);
    if !port.is_empty() && port.parse::<u16>().is_ok() {
        return format!(
            "write `0.0.0.0:{port}` for every address of this machine, or `127.0.0.1:{port}` for this machine alone"
        );
    }
    if let Some((host, port)) = text.rsplit_once(':') {
        let is_port = port.parse::<u16>().is_ok();
        if host == "localhost" && is_port {
            return format!("host names are not looked up here: write `127.0.0.1:{port}`");
        }
        if !is_port && host.parse::<std::net::Ipv4Addr>().is_ok() {
            return "a port is a number from 1 to 65535".to_owned();
        }
        if is_port && host.parse::<std::net::Ipv6Addr>().is_ok() {
            return format!("write an IPv6 address in brackets: `[{host}]:{port}`");
        }
    }
    "write an IP address and a port, such as `0.0.0.0:8080`; host names are not looked up here".to_owned()
}

/// An address or network; a bare address is a network of one.
impl ScalarValue for IpNet {
    const EXPECTED: &'static str = "an address or network";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        network_or_help(text)
    }

    fn schema() -> Value {
        let mut schema = grammar::text("address or network", &grammar::network());
        schema["examples"] = json!(["198.51.100.0/24", "2001:db8::/32"]);
        schema
    }
}

/// An address or network. Where globs may be expected, one gets help of its own.
pub fn network_or_help(text: &str) -> Result<IpNet, InvalidValue> {
    network(text).map_err(|error| match error {
        InvalidNetwork::NotAnAddress(text) if Glob::looks_like_glob(&text) => {
            InvalidValue::of_glob(&text, "an address", "write a network such as `198.51.100.0/24`")
        }
        error => InvalidValue::from(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn advises(text: &str, expected: &str) {
        assert_eq!(socket_advice(text), expected);
    }

    #[test]
    fn what_was_meant_by_half_an_address_is_guessed() {
        advises("10.0.0.1", "a port is missing: write `10.0.0.1:8080`");
        advises("::1", "a port is missing: write `[::1]:8080`");
        advises("[::1]", "a port is missing: write `[::1]:8080`");
        advises(
            "8080",
            "write `0.0.0.0:8080` for every address of this machine, or `127.0.0.1:8080` for this machine alone",
        );
        advises(
            ":80",
            "write `0.0.0.0:80` for every address of this machine, or `127.0.0.1:80` for this machine alone",
        );
        advises("localhost:80", "host names are not looked up here: write `127.0.0.1:80`");
        advises(
            "443 ssl;",
            "write `0.0.0.0:443` for every address of this machine, or `127.0.0.1:443` for this machine alone",
        );
        advises("http://10.0.0.1:80/", "write `10.0.0.1:80`");
        advises("10.0.0.1:80000", "a port is a number from 1 to 65535");
        advises("web", "write an IP address and a port, such as `0.0.0.0:8080`; host names are not looked up here");
    }

    #[test]
    fn a_bare_address_is_a_network_of_one() {
        assert_eq!(IpNet::parse("10.0.0.1").map(|network| network.to_string()), Ok("10.0.0.1/32".to_owned()));
        assert_eq!(IpNet::parse("10.0.0.1/8").map(|network| network.to_string()), Ok("10.0.0.0/8".to_owned()));
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!(u64::parse("20"), Ok(20));
        for wrong in ["", "-1", "+1", "1.5", "1e3", "0x10", "1_000", "99999999999999999999"] {
            assert!(u64::parse(wrong).is_err(), "{wrong}");
        }
    }
}
