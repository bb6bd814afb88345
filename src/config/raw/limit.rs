//! A limit and its key, as they are written.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::field::section;
use super::forms::{ListOf, MapOf, OneOrList};
use super::grammar;
use super::scalar::ScalarValue;
use super::store::Leases;
use super::then::Then;
use crate::config::diagnostic::Mistakes;
use crate::config::raw::forms::{InvalidValue, RawValue, Spanned, Text};
use crate::config::yaml::{Content, Node};
use crate::rules::key::{Fold, Selector, Spelling};
use crate::rules::limit;
use crate::rules::limit::{
    AlgorithmName, Count, Detail, EntrySet, InvalidRate, Missing, OnFailure, Rate, Rates, ResetOutcome,
};
use crate::words::word::words;

section! {
    /// A limit: how much of what is counted passes, and what happens to the rest.
    Limit {
        /// Its name in logs, metrics and headers. Counters are kept by this name. Default: the name of the route and
        /// a number.
        name: Text => NAME,
        /// What is counted separately: a selector such as `client_ip`, a list of selectors for one key of several
        /// parts, or `[]` for one count of all requests.
        key: OneOrList<KeyPart>,
        /// How many requests in how much time: `10/minute`, `10 per 3 minutes`, `1/second; 20/minute`. All rates of a
        /// limit apply at once.
        rate: Spanned<Rates>,
        /// Instead of a rate: how many requests may be in flight at a time.
        concurrent: Spanned<u64> => COUNT,
        /// The algorithm that counts requests against rates. `sliding-window-log` is exact.
        algorithm: Spanned<AlgorithmName> = AlgorithmName::default(),
        /// For `token-bucket`: how many requests may come at once. Default: the count of the rate.
        burst: Spanned<u64> => COUNT,
        /// For `bucketed-window`: how many counters a window has. Default: one for each minute, or 10 where the
        /// window is shorter than ten minutes.
        buckets: Spanned<u64> => COUNT,
        /// How much one request is charged.
        cost: Spanned<u64> => COUNT = limit::Rule::COST,
        /// Count different values of this selector instead of requests. A value that was counted within the window
        /// costs nothing.
        distinct: KeyPart,
        /// What is charged: `requests` that passed; `attempts`, which includes denied requests; or requests
        /// that passed and whose answer the route's `outcome` calls one of its `failures` or `successes`.
        count: Spanned<Count> = Count::default(),
        /// The outcome that resets this key's counters: `success` or `failure`.
        reset_on: Spanned<ResetOutcome>,
        /// In a domain: entries of a descriptor and globs for their values, in which `[*]` and `[?]` stand for these characters
        /// themselves. The limit meets only descriptors with these.
        descriptor: MapOf<Text>,
        /// In a domain: entries of a descriptor and one or several globs. The limit does not meet descriptors with these.
        except: MapOf<OneOrList<Text>>,
        /// In a domain: whether a descriptor may have entries beside those of `key` and `descriptor`: `at_least` lets it have
        /// them, `exact` does not.
        entries: Spanned<EntrySet> = EntrySet::default(),
        /// In a domain: names of limits that do not apply to a call in which this limit is met.
        replaces: OneOrList<Text>,
        /// What to do with a request that lacks a part of the key: `count` counts it under the empty value, `skip` skips this
        /// limit, `deny` denies the request. A part that was not understood is not lacking.
        missing: Spanned<Missing> = Missing::default(),
        /// Decide, count and report as if the limit applied, but let the request pass.
        shadow: Spanned<bool> = limit::Limit::SHADOW,
        /// Names of lists whose members this limit does not apply to. `known_client` stands for the known clients of the
        /// route (`known_clients`).
        unless: OneOrList<Text>,
        /// What to do while Redis does not answer: `local`, `allow` or `deny`. Default: `store.on_failure`.
        on_failure: Spanned<OnFailure>,
        /// Whether a gateway may hold units of this limit for a second, so that it asks Redis less often: `auto` or `off`.
        /// Default: `store.leases`.
        leases: Spanned<Leases>,
        /// Which headers this limit shows to clients: `full` (`RateLimit` and `Retry-After`), `retry_after` or
        /// `none`. Where counts would reveal other people's traffic the default is `retry_after`: where the key or `distinct`
        /// reads the body, or the limit depends on outcomes or known clients.
        headers: Spanned<Detail> = Detail::default(),
        /// What happens beyond the limit: `deny`, or a map with one action and with `notify`.
        then: Then = limit::Action::default(),
    }
    required {
        key => "write what is counted: `key: client_ip` counts each client, `key: []` all requests together",
    }
    later {
        "when" => "put the limit on a route of its own, whose `match` says which requests it is for",
        "zone" => "remove it: counters are kept by the name of the limit, and windows follow no calendar",
    }
    rules {
        grammar::one_of(&["rate", "concurrent"]),
        grammar::not_both("rate", "concurrent"),
        grammar::only_with("burst", "algorithm", &grammar::words(&[AlgorithmName::TokenBucket.as_str()])),
        grammar::only_with("buckets", "algorithm", &grammar::words(&[AlgorithmName::BucketedWindow.as_str()])),
        grammar::not_both("concurrent", "distinct"),
        grammar::not_both("concurrent", "algorithm"),
        grammar::not_both("concurrent", "cost"),
        grammar::not_both("concurrent", "reset_on"),
        grammar::not_both("distinct", "algorithm"),
        grammar::not_both("distinct", "cost"),
        grammar::no_ban_of_slots(),
    }
}

/// One or several rates in one text.
impl ScalarValue for Rates {
    const EXPECTED: &'static str = "rates in one text";
    const LATER: &'static [&'static str] = &["of"];

    fn instead() -> String {
        "write them with `;` between them: `rate: 1/second; 20/minute`".to_owned()
    }
    fn parse(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(|error: InvalidRate| InvalidValue::from(error))
    }

    fn schema() -> Value {
        let mut schema = grammar::text("rate", &grammar::rates(Rate::MAX_WINDOW.as_secs()));
        schema["examples"] = json!(["10/minute", "10 per 3 minutes", "1/second; 20/minute"]);
        schema
    }
}

/// One part of a key: a selector, perhaps with options: `client_ip`, `{client_ip: {v4: 24}}`, `{param.username: {raw: true}}`;
/// or the first of several that is there: `{first: [user, client_ip]}`.
#[derive(Clone, Debug)]
pub struct KeyPart {
    pub selector: Text,
    pub options: Option<KeyOptions>,
    /// The selectors of `{first: [user, client_ip]}`.
    pub first: Option<ListOf<KeyPart>>,
}

impl KeyPart {
    /// Its selector, or those of `first`.
    pub fn selectors(&self) -> impl Iterator<Item = &Text> {
        let choices = self.first.as_ref().map(|first| &first.items[..]).unwrap_or_default();
        let itself = Some(&self.selector).filter(|_| self.first.is_none());
        itself.into_iter().chain(choices.iter().map(|choice| &choice.selector))
    }
}

section! {
    /// Options of one selector.
    KeyOptions {
        /// For `client_ip`: count IPv4 addresses by this many leading bits.
        v4: Spanned<u64> => IPV4_PREFIX,
        /// For `client_ip`: count IPv6 addresses by this many leading bits.
        v6: Spanned<u64> => IPV6_PREFIX,
        /// For values from bodies and for `basic.user`: compare them as sent, neither case-folded nor trimmed.
        raw: Spanned<bool> = matches!(Spelling::default(), Spelling::AsSent),
        /// Compare only a part of the value: `local_part` is what stands before the `@`, so that `bob` and
        /// `bob@example.com` are one key.
        normalise: Spanned<Normalise>,
        /// Which names are one: `letters` compares letters and digits alone, written in ASCII, so that `Àlicé`, `a.lice`
        /// and `alice` are one key; `email` also takes addresses of one mailbox for one.
        fold: Spanned<Fold>,
        /// A regular expression that the whole name must match. Names that do not match share one key.
        pattern: Text,
    }
    short {
        number => "{v4: $}",
    }
}

/// The key of a list of selectors of which the first that is there counts.
const FIRST: &str = "first";

words! {
    /// What is compared of a value. It compiles to a part of a spelling.
    pub enum Normalise {
        LocalPart = "local_part",
    }
}

impl RawValue for KeyPart {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.content {
            Content::Scalar(text) => {
                Some(Self { selector: Text { value: text.clone(), at: node.at }, options: None, first: None })
            }
            Content::Map(entries) => {
                let [(name, options)] = &entries[..] else {
                    mistakes.report(
                        node.at,
                        format!("expected one selector and its options, found {} keys", entries.len()),
                        "write several selectors as a list: `[client_ip, {param.username: {raw: true}}]`",
                    );
                    return None;
                };
                let selector = Text { value: name.text.clone(), at: name.at };
                if name.text == FIRST {
                    let first = ListOf::read(options, mistakes)?;
                    return Some(Self { selector, options: None, first: Some(first) });
                }
                Some(Self { selector, options: Some(KeyOptions::read(options, mistakes)?), first: None })
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
        let mut selector = grammar::text("selector", &grammar::selector());
        selector["examples"] = json!(Selector::FORMS);
        let options = KeyOptions::schema(definitions);
        let one = json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": options });
        let first = json!({
            "description": "One part of the key: the first of these selectors that is not missing. The kinds never share a budget.",
            "type": "array",
            "minItems": 1,
            "items": { "anyOf": [selector, one] },
        });
        let with_options = json!({
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": { FIRST: first },
            "additionalProperties": options,
        });
        json!({ "anyOf": [selector, with_options] })
    }
}
