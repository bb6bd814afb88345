//! Turns the parse errors of the core into a message and a help text. Most errors name the correction at their end.

use super::raw::InvalidValue;
use crate::crowdsec::InvalidLapiUrl;
use crate::glob::Glob;
use crate::http_client::InvalidDocumentUrl;
use crate::key::InvalidNamePattern;
use crate::limit::InvalidRate;
use crate::limit::InvalidRule;
use crate::list::InvalidNetwork;
use crate::outcome::InvalidBodyPattern;
use crate::outcome::InvalidStatus;
use crate::record::notify::InvalidWebhook;
use crate::record::spans::InvalidCollectorUrl;
use crate::route::InvalidHostPattern;
use crate::route::InvalidMatch;
use crate::route::InvalidMethod;
use crate::route::InvalidPathPattern;
use crate::route::InvalidPathRegex;
use crate::store::redis::url::InvalidUrl;
use crate::units::InvalidSize;
use crate::units::InvalidSpan;

impl From<InvalidRate> for InvalidValue {
    fn from(error: InvalidRate) -> Self {
        let otherwise = match error {
            InvalidRate::Zero => {
                "write a count of 1 or more, such as `1/minute`; to refuse a client always, put it on a list under `access.deny`"
            }
            _ => "write for instance `10/minute` or `10 per 3 minutes`",
        };
        split(&error.to_string(), otherwise)
    }
}

impl From<InvalidRule> for InvalidValue {
    fn from(error: InvalidRule) -> Self {
        let otherwise = match error {
            InvalidRule::CostAboveCount { .. } => "lower the cost, or raise the rate",
            InvalidRule::CostAboveBurst { .. } => "lower the cost, or raise `burst`",
            InvalidRule::TooManyToLog { .. }
            | InvalidRule::TooManyBuckets { .. }
            | InvalidRule::TooManyDistinct { .. } => "write a smaller number",
        };
        split(&error.to_string(), otherwise)
    }
}

impl From<InvalidMatch> for InvalidValue {
    fn from(error: InvalidMatch) -> Self {
        match error {
            InvalidMatch::Short(url) if url.contains("://") && !url.contains(' ') => {
                Self::with(format!("`{url}` is not a match"), of_url(&url))
            }
            InvalidMatch::Short(text) => Self::with(
                format!("`{text}` is not a match"),
                "write a path, or methods and a path: `/admin/*`, `POST /login` or `GET,POST /search`",
            ),
            InvalidMatch::Method(error) => error.into(),
            InvalidMatch::Path(error) => error.into(),
        }
    }
}

impl From<InvalidPathPattern> for InvalidValue {
    fn from(error: InvalidPathPattern) -> Self {
        let otherwise = match &error {
            InvalidPathPattern::Relative(url) if url.contains("://") => of_url(url),
            InvalidPathPattern::Relative(path) => format!("write `/{}`", path.trim_start_matches("./")),
            InvalidPathPattern::Repeated(_) => "give one of the two another name".to_owned(),
            _ => "write one such as `/login`, `/admin/*` or `/users/{id}`".to_owned(),
        };
        split(&error.to_string(), &otherwise)
    }
}

/// A whole URL where a path is expected.
fn of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    if host.is_empty() {
        return format!("write `/{path}`");
    }
    format!("write `{{host: {host}, path: /{path}}}`; a method stands there as `methods: [POST]`")
}

impl From<InvalidMethod> for InvalidValue {
    fn from(error: InvalidMethod) -> Self {
        if Glob::looks_like_glob(&error.0) {
            return Self::of_glob(&error.0, "a method", "name each, or leave the methods out: that is any method");
        }
        Self::with(error.to_string(), "write one such as `GET` or `POST`; several are a list: `[GET, POST]`")
    }
}

impl From<InvalidPathRegex> for InvalidValue {
    fn from(error: InvalidPathRegex) -> Self {
        let help = match error {
            InvalidPathRegex::Syntax(_) => {
                "write one such as `^/v[0-9]+/`; write a `\\` before a bracket or a dot that is meant literally"
            }
            InvalidPathRegex::TooLarge => "lower the counts in its braces, or split it into two routes",
        };
        Self::with(error.to_string(), help)
    }
}

impl From<InvalidNamePattern> for InvalidValue {
    fn from(error: InvalidNamePattern) -> Self {
        let help = match error {
            InvalidNamePattern::Syntax(_) => {
                "write one such as `[a-z][a-z0-9._-]*`; write a `\\` before a bracket or a dot that is meant literally"
            }
            InvalidNamePattern::TooLarge => "lower the counts in its braces",
        };
        Self::with(error.to_string(), help)
    }
}

impl From<InvalidHostPattern> for InvalidValue {
    fn from(error: InvalidHostPattern) -> Self {
        split(&error.to_string(), "write a name such as `example.com` or `*.example.com`")
    }
}

impl From<InvalidNetwork> for InvalidValue {
    fn from(error: InvalidNetwork) -> Self {
        if let InvalidNetwork::NotAnAddress(text) = &error
            && Glob::looks_like_glob(text)
        {
            return Self::of_glob(text, "an address", "write a network such as `198.51.100.0/24`");
        }
        split(&error.to_string(), "write one such as `198.51.100.0/24` or `2001:db8::/32`")
    }
}

impl From<InvalidSpan> for InvalidValue {
    fn from(error: InvalidSpan) -> Self {
        if let InvalidSpan::NoUnit(number) = &error {
            let help = format!("write `{number}ms`, `{number}s`, `{number}m`, `{number}h` or `{number}d`");
            return Self::with(format!("`{number}` needs a unit"), help);
        }
        split(&error.to_string(), "write a number and a unit such as `500ms`, `20s`, `3m`, `1h` or `7d`")
    }
}

impl From<InvalidSize> for InvalidValue {
    fn from(error: InvalidSize) -> Self {
        split(&error.to_string(), "write a number and a unit such as `64KiB` or `10MiB`")
    }
}

impl From<InvalidUrl> for InvalidValue {
    fn from(error: InvalidUrl) -> Self {
        split(&error.to_string(), "write one such as `redis://127.0.0.1:6379/0`")
    }
}

impl From<InvalidStatus> for InvalidValue {
    fn from(error: InvalidStatus) -> Self {
        split(&error.to_string(), "write one such as `401`, `4xx` or `400-499`")
    }
}

impl From<InvalidBodyPattern> for InvalidValue {
    fn from(error: InvalidBodyPattern) -> Self {
        let help = match error {
            InvalidBodyPattern::Empty => "write a text that only such answers contain, or remove `body`",
            InvalidBodyPattern::Syntax(_) => {
                "write one such as `/invalid (user|password)/`; a literal text has no slashes around it"
            }
            InvalidBodyPattern::TooLarge => "lower the counts in its braces",
        };
        Self::with(error.to_string(), help)
    }
}

impl From<InvalidWebhook> for InvalidValue {
    fn from(error: InvalidWebhook) -> Self {
        let help = match error {
            InvalidWebhook::NotHttp => "write one such as `https://hooks.example.com/...`, with the secret in its path",
            InvalidWebhook::Credentials => "remove what stands before the `@`",
        };
        Self::with(error.to_string(), help)
    }
}

impl From<InvalidLapiUrl> for InvalidValue {
    fn from(error: InvalidLapiUrl) -> Self {
        let help = match error {
            InvalidLapiUrl::NotHttp => "write where CrowdSec's Local API listens: `http://127.0.0.1:8080`",
            InvalidLapiUrl::Credentials => "remove it; the key or the password stands in a file of its own",
            InvalidLapiUrl::Query => "remove it",
        };
        Self::with(error.to_string(), help)
    }
}

impl From<InvalidDocumentUrl> for InvalidValue {
    fn from(error: InvalidDocumentUrl) -> Self {
        let help = match error {
            InvalidDocumentUrl::NotHttps => "write one such as `https://id.example.com/.well-known/jwks.json`",
            InvalidDocumentUrl::PlainHttp => {
                "write `https://`; plain http only reaches `127.0.0.1`, `[::1]` and `localhost`"
            }
            InvalidDocumentUrl::Credentials => "remove the part before the `@`",
            InvalidDocumentUrl::Fragment => "remove what stands behind the `#`",
        };
        Self::with(error.to_string(), help)
    }
}

impl From<InvalidCollectorUrl> for InvalidValue {
    fn from(error: InvalidCollectorUrl) -> Self {
        let help = match error {
            InvalidCollectorUrl::NotHttp => {
                "write the address of a collector for OTLP over HTTP: `http://127.0.0.1:4318`"
            }
            InvalidCollectorUrl::Credentials => {
                "remove the part before the `@`; headers for the collector are taken from the variable \
                 OTEL_EXPORTER_OTLP_HEADERS"
            }
            InvalidCollectorUrl::Query => {
                "remove what stands behind the `?`; headers for the collector are taken from the variable \
                 OTEL_EXPORTER_OTLP_HEADERS"
            }
        };
        Self::with(error.to_string(), help)
    }
}

/// Splits an error message into what is wrong and what to write. Without the second part the help is `otherwise`.
fn split(message: &str, otherwise: &str) -> InvalidValue {
    for (between, help) in SEPARATORS {
        if let Some((wrong, instead)) = message.rsplit_once(between) {
            // What stands alone there is a value.
            let is_value = *between == AT_MOST && !instead.contains('`');
            let instead = if is_value { format!("`{instead}`") } else { instead.to_owned() };
            return InvalidValue::with(wrong, format!("{help}{instead}"));
        }
    }
    InvalidValue::with(message, otherwise)
}

const AT_MOST: &str = ", at most ";

/// The text between the two parts of a message, and how the help begins.
const SEPARATORS: &[(&str, &str)] = &[
    (", write ", "write "),
    (", expected ", "expected "),
    (", match ", "match "),
    (", use ", "use "),
    (": add ", "add "),
    (": write ", "write "),
    (", as in ", "write it as in "),
    (AT_MOST, "write at most "),
    (", the longest ", "the longest "),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, message: &str, help: &str) {
        let problem = text.parse::<crate::limit::Rates>().map_err(InvalidValue::from).unwrap_err();
        assert_eq!((problem.message.as_str(), problem.help.as_str()), (message, help));
    }

    #[test]
    fn the_correction_becomes_the_help() {
        check("10", "`10` is not a rate", "write a count and a window such as `10/minute` or `10 per 3 minutes`");
        check(
            "1/s, 2/s",
            "two rates for the same window, `1/second` and `2/second`",
            "write the smaller one, `1/second`",
        );
        check("1 per 101 years", "a window of 101 years is too long", "write at most `100 years`");
    }
}
