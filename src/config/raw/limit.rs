//! A limit as it is written, its key, and what happens beyond it.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::Raw;
use super::Spanned;
use super::Text;
use super::field::listed;
use super::field::not_built;
use super::forms::Named;
use super::forms::OneOrMany;
use super::leaf::Leaf;
use super::leaf::Problem;
use super::leaf::words;
use super::section;
use super::store::OnFailure;
use crate::config::diagnostic::Mistakes;
use crate::config::source::Place;
use crate::config::yaml::Content;
use crate::config::yaml::Node;
use crate::key::Selector;
use crate::limit::InvalidRate;
use crate::limit::Rates;

section! {
    /// One promise: how often a key may do something, and what happens beyond.
    Limit {
        /// Its name in logs, metrics and headers. Counters belong to it. Left out: the route's name and a number.
        name: Text,
        /// What is counted: a selector such as `client_ip`, a list of them for one key of several parts, `[]` for one key for all.
        key: OneOrMany<KeyPart>,
        /// How often: `10/minute`, `10 per 3 minutes`, `1/second; 20/minute`.
        rate: Spanned<Rates>,
        /// Instead of a rate: how many requests may be in flight.
        concurrent: Spanned<u64>,
        /// How requests are counted against rates. Default: `sliding-window-log`, which is exact.
        algorithm: Spanned<Algorithm>,
        /// For `token-bucket`: how many may come at once. Default: the rate's count.
        burst: Spanned<u64>,
        /// For `bucketed-window`: how many counters a window has. Default: whole minutes, or 10 under ten minutes.
        buckets: Spanned<u64>,
        /// How much one request is charged. Default: 1.
        cost: Spanned<u64>,
        /// What is charged: `requests` (default) that were let through, or `attempts`, denied ones too.
        count: Spanned<Count>,
        /// A request that lacks a part of the key: `count` (default) it under the empty value, `skip` this limit, or `deny` it.
        missing: Spanned<Missing>,
        /// Decided, counted and reported as if in force, never applied. Default: false.
        shadow: Spanned<bool>,
        /// Lists whose members this limit does not hold for.
        unless: OneOrMany<Text>,
        /// What holds while Redis does not answer: `local`, `allow` or `deny`. Default: what `store.on_failure` says.
        on_failure: Spanned<OnFailure>,
        /// What responses show: `full` (`RateLimit` headers), `retry_after` or `none`. Default: `full`, `retry_after` where the key reads the body.
        headers: Spanned<Detail>,
        /// What happens beyond the limit: `deny`, or `{deny: {...}}` with a response of its own.
        then: Then,
    }
    required {
        key => "say what is counted: `key: client_ip` counts each client, `key: []` everyone together",
    }
    later {
        "reset_on" => "remove it: the application's answers are not looked at in this version",
        "distinct" => "remove the limit, or count requests instead of different values",
    }
}

/// One or several rates in one text.
impl Leaf for Rates {
    const EXPECTED: &'static str = "rates in one text";
    const IS_TEXT: bool = true;
    const INSTEAD: &'static str = "write them with `;` between them: `rate: 1/second; 20/minute`";

    fn parse(text: &str) -> Result<Self, Problem> {
        text.parse().map_err(|error: InvalidRate| Problem::from(error))
    }

    fn schema() -> Value {
        json!({ "type": "string", "examples": ["10/minute", "10 per 3 minutes", "1/second; 20/minute"] })
    }
}

words! {
    /// How requests are counted against rates.
    Algorithm {
        "sliding-window-log" => SlidingWindowLog,
        "sliding-window-counter" => SlidingWindowCounter,
        "bucketed-window" => BucketedWindow,
        "fixed-window" => FixedWindow,
        "token-bucket" => TokenBucket,
    }
}

words! {
    /// What is charged.
    Count {
        "requests" => Requests,
        "attempts" => Attempts,
    }
    later {
        "failures" => "write `requests` or `attempts`: the application's answers are not looked at in this version",
        "successes" => "write `requests` or `attempts`: the application's answers are not looked at in this version",
    }
}

words! {
    /// What becomes of a request that lacks a part of the key.
    Missing {
        "count" => Count,
        "skip" => Skip,
        "deny" => Deny,
    }
}

words! {
    /// What responses show of a limit.
    Detail {
        "full" => Full,
        "retry_after" => RetryAfter,
        "none" => None,
    }
}

/// One part of a key: a selector, perhaps with options: `client_ip`, `{client_ip: {v4: 24}}`, `{param.username: {raw: true}}`.
#[derive(Clone, Debug)]
pub struct KeyPart {
    pub selector: Text,
    pub options: Option<KeyOptions>,
}

section! {
    /// Options of one selector.
    KeyOptions {
        /// For `client_ip`: so many leading bits of IPv4 addresses make one client.
        v4: Spanned<u64>,
        /// For `client_ip`: so many leading bits of IPv6 addresses make one client.
        v6: Spanned<u64>,
        /// For names from bodies and `basic.user`: taken as sent, neither case-folded nor trimmed.
        raw: Spanned<bool>,
    }
}

impl Raw for KeyPart {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.content {
            Content::Scalar(text) => Some(Self { selector: Text { value: text.clone(), at: node.at }, options: None }),
            Content::Map(entries) => {
                let [(name, options)] = &entries[..] else {
                    mistakes.report(
                        node.at,
                        format!("expected one selector and its options, found {} keys", entries.len()),
                        "several selectors are a list: `[client_ip, {param.username: {raw: true}}]`",
                    );
                    return None;
                };
                let selector = Text { value: name.text.clone(), at: name.at };
                Some(Self { selector, options: Some(KeyOptions::read(options, mistakes)?) })
            }
            Content::Nothing | Content::List(_) => {
                mistakes.report(
                    node.at,
                    format!("expected a selector, found {}", node.kind()),
                    "write one such as `client_ip` or `param.username`",
                );
                None
            }
        }
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        let selector = json!({ "type": "string", "examples": Selector::FORMS });
        let with_options = json!({
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": KeyOptions::schema(definitions),
        });
        json!({ "anyOf": [selector, with_options] })
    }
}

/// What happens beyond a limit.
#[derive(Clone, Debug)]
pub enum Then {
    Deny,
    DenyWith(Box<DenyResponse>),
}

impl Raw for Then {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.content {
            Content::Scalar(text) if text == "deny" => Some(Self::Deny),
            Content::Scalar(text) => {
                refuse_action(text, node.at, mistakes);
                None
            }
            Content::Map(entries) => {
                let mut deny = None;
                for (name, value) in entries {
                    if name.text != "deny" {
                        refuse_action(&name.text, name.at, mistakes);
                    } else if value.content == Content::Nothing {
                        deny = Some(Self::Deny);
                    } else {
                        deny = DenyResponse::read(value, mistakes).map(|response| Self::DenyWith(Box::new(response)));
                    }
                }
                if entries.is_empty() {
                    mistakes.report(node.at, "an empty `then`", "write `then: deny`, or leave it out");
                }
                deny
            }
            Content::Nothing | Content::List(_) => {
                mistakes.report(node.at, format!("expected an action, found {}", node.kind()), "write `deny`");
                None
            }
        }
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        let long = super::field::define(
            "Then",
            "What happens beyond a limit.",
            &super::field::Keys { known: &["deny"], required: &[("deny", "")], later: &[] },
            definitions,
            |definitions| vec![("deny", "Denied, with a response of its own.", DenyResponse::schema(definitions))],
        );
        json!({ "anyOf": [{ "enum": ["deny"] }, long] })
    }
}

fn refuse_action(action: &str, at: Place, mistakes: &mut Mistakes) {
    let later = ["delay", "tarpit", "ban", "challenge", "notify"];
    if later.contains(&action) {
        not_built(at, action, "write `then: deny`, or leave `then` out", mistakes);
        return;
    }
    let help = match super::field::nearest(action, &["deny"]) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("this version knows {}", listed(&["deny"])),
    };
    mistakes.report(at, format!("unknown action `{action}`"), help);
}

section! {
    /// How a denial looks.
    DenyResponse {
        /// Its status. Default: 429.
        status: Spanned<Status>,
        /// Sent as it is, to everyone.
        body: Text,
        /// A page for browsers; programs get the problem document.
        body_file: Text,
        /// Further response headers, name to value.
        headers: Named<Text>,
        /// Where browsers and programs are sent instead: `Location`, with status 303 unless `status` is another redirect.
        redirect: Text,
    }
}

/// A status that a denial may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status(pub http::StatusCode);

impl Leaf for Status {
    const EXPECTED: &'static str = "a status such as `429`";

    fn parse(text: &str) -> Result<Self, Problem> {
        let refused = || {
            Problem::with(format!("`{text}` is not the status of a denial"), "write one from 200 to 599, such as `429`")
        };
        let status = text.parse::<http::StatusCode>().map_err(|_| refused())?;
        match status.as_u16() {
            204 | 205 | 304 => Err(Problem::with(
                format!("a response with status {text} has no body"),
                "a denial says why: write a status such as `429` or `403`",
            )),
            200..=599 => Ok(Self(status)),
            _ => Err(refused()),
        }
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 200, "maximum": 599 })
    }
}
