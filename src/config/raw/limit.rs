//! A limit as it is written, its key, and what happens beyond it.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::Raw;
use super::Spanned;
use super::Text;
use super::forms::OneOrMany;
use super::leaf::Leaf;
use super::leaf::Problem;
use super::leaf::words;
use super::section;
use super::store::OnFailure;
use super::then::Then;
use crate::config::diagnostic::Mistakes;
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
        /// Instead of requests: different values of this selector are counted. One that was seen within the window costs nothing.
        distinct: KeyPart,
        /// What is charged: `requests` (default) that were let through, `attempts`, denied ones too, or requests whose answer was one of the route's `failures` or `successes`.
        count: Spanned<Count>,
        /// An answer that forgets what was counted under this key: `success`, or `failure`.
        reset_on: Spanned<Answer>,
        /// A request that lacks a part of the key: `count` (default) it under the empty value, `skip` this limit, or `deny` it.
        missing: Spanned<Missing>,
        /// Decided, counted and reported as if in force, never applied. Default: false.
        shadow: Spanned<bool>,
        /// Lists whose members this limit does not hold for; `known_client` is whom the route's `known_clients` knows.
        unless: OneOrMany<Text>,
        /// What holds while Redis does not answer: `local`, `allow` or `deny`. Default: what `store.on_failure` says.
        on_failure: Spanned<OnFailure>,
        /// What responses show: `full` (`RateLimit` headers), `retry_after` or `none`. Default: `full`; `retry_after` where it would tell of others' traffic: the key or `distinct` reads the body, or answers or known clients matter.
        headers: Spanned<Detail>,
        /// What happens beyond the limit: `deny` (default), or a map with one of `deny`, `delay`, `tarpit`, `ban` and `challenge`, and with `notify`.
        then: Then,
    }
    required {
        key => "say what is counted: `key: client_ip` counts each client, `key: []` everyone together",
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
        "failures" => Failures,
        "successes" => Successes,
    }
}

words! {
    /// What an answer means that resets a limit.
    Answer {
        "success" => Success,
        "failure" => Failure,
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
        /// What is compared of a value: `local_part` is what stands before the `@`, so that `bob` and `bob@example.com` are one.
        normalise: Spanned<Normalise>,
    }
}

words! {
    /// What is compared of a value.
    Normalise {
        "local_part" => LocalPart,
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
