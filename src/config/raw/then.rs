//! The `then` of a limit, as it is written.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::field::section;
use super::forms::{MapOf, OneOrList};
use super::grammar;
use super::scalar::ScalarValue;
use crate::config::diagnostic::Mistakes;
use crate::config::raw::forms::{InvalidValue, RawValue, Spanned, Text};
use crate::config::source::SourceRange;
use crate::config::yaml::{Content, Node};
use crate::rules::limit;
use crate::rules::limit::ChallengeKind;
use crate::words::units::{Span, nearest};

/// What happens beyond a limit.
#[derive(Clone, Debug)]
pub enum Then {
    /// `deny`
    Deny,
    Long(Box<Actions>),
}

section! {
    /// What happens beyond a limit: one action, and the webhooks that get a message.
    Actions {
        /// Deny, with a response of its own.
        deny: DenyResponse,
        /// Hold the request for this long, then forward it.
        delay: Spanned<Span> => HELD_FOR,
        /// Hold the request for this long, then deny it.
        tarpit: Spanned<Span> => HELD_FOR,
        /// Deny the key for this long, whatever its counters say. Of a list, each further ban takes the next length.
        ban: OneOrList<Spanned<Span>> => BAN,
        /// Deny with a page whose proof of work buys one more budget: `pow`.
        challenge: Spanned<ChallengeKind>,
        /// Names of webhooks in the `notify` section that get a message.
        notify: OneOrList<Text>,
    }
    later {
        "wait" => "write `delay`, which holds a request for as long as it says and then forwards it",
    }
    rules {
        grammar::not_empty(),
        grammar::at_most_one(&["deny", "delay", "tarpit", "ban", "challenge"]),
        grammar::filled(&["ban", "notify"]),
    }
}

impl Actions {
    /// The actions that are written, with their keys.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, SourceRange)> {
        let keys = [
            ("deny", self.deny.key()),
            ("delay", self.delay.key()),
            ("tarpit", self.tarpit.key()),
            ("ban", self.ban.key()),
            ("challenge", self.challenge.key()),
        ];
        keys.into_iter().filter_map(|(word, key)| Some((word, key?)))
    }
}

impl RawValue for Then {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.content {
            Content::Scalar(text) if text == "deny" => Some(Self::Deny),
            Content::Scalar(text) => {
                report_word(text, node.at, mistakes);
                None
            }
            Content::Map(entries) if entries.is_empty() => {
                mistakes.report(node.at, "an empty `then`", "write `then: deny`, or leave it out");
                None
            }
            Content::Map(_) => Actions::read(&with_bare_deny(node), mistakes).map(|long| Self::Long(Box::new(long))),
            Content::Nothing | Content::List(_) => {
                mistakes.report(node.at, format!("expected an action, found {}", node.kind()), FORMS);
                None
            }
        }
    }

    fn schema(definitions: &mut BTreeMap<&'static str, Value>) -> Value {
        let actions = Actions::schema(definitions);
        // `{deny: }` is the usual response.
        if let Some(deny) = definitions.get_mut("Actions").map(|actions| &mut actions["properties"]["deny"])
            && let Some(reference) = deny.as_object_mut().and_then(|deny| deny.remove("$ref"))
        {
            deny["anyOf"] = json!([{ "$ref": reference }, { "type": "null" }]);
        }
        json!({ "anyOf": [{ "enum": ["deny"] }, actions] })
    }
}

/// Reads `{deny, ...}` as `{deny: {}, ...}`.
fn with_bare_deny(node: &Node) -> Node {
    let mut node = node.clone();
    if let Content::Map(entries) = &mut node.content {
        let bare = entries.iter_mut().filter(|(name, value)| name.text == "deny" && value.content == Content::Nothing);
        bare.for_each(|(_, value)| value.content = Content::Map(Vec::new()));
    }
    node
}

fn report_word(word: &str, at: SourceRange, mistakes: &mut Mistakes) {
    let message = format!("`{word}` needs a value");
    match word {
        "delay" | "tarpit" => mistakes.report(at, message, format!("write how long: `{{{word}: 20s}}`")),
        "ban" => mistakes.report(at, message, "write how long: `{ban: 15m}`, or `{ban: [15m, 1h, 24h]}`"),
        "challenge" => mistakes.report(at, message, "write `{challenge: pow}`"),
        "notify" => mistakes.report(at, message, "write the channels: `{notify: [ops]}`"),
        _ => {
            let action = word.split_once(char::is_whitespace).map(|(action, value)| (action, value.trim()));
            let help = match (action, nearest(word, Actions::KEYS.known)) {
                (Some((action, value)), _) if Actions::KEYS.known.contains(&action) => {
                    format!("write `{{{action}: {value}}}`")
                }
                _ if DENIALS_OF_OTHERS.contains(&word) => "did you mean `deny`?".to_owned(),
                (_, Some(near)) => format!("did you mean `{near}`?"),
                (_, None) => FORMS.to_owned(),
            };
            mistakes.report(at, format!("unknown action `{word}`"), help);
        }
    }
}

/// How HAProxy, nginx and firewalls call it.
const DENIALS_OF_OTHERS: [&str; 6] = ["drop", "silent-drop", "reject", "block", "429", "403"];

const FORMS: &str = "write `deny`, `{delay: 20s}`, `{tarpit: 20s}`, `{ban: 15m}` or `{challenge: pow}`";

section! {
    /// The response to a denied request.
    DenyResponse {
        /// The status.
        status: Spanned<Status> = limit::DenyResponse::STATUS.as_u16(),
        /// A body that every client gets as it is.
        body: Text,
        /// A file with an HTML page for browsers. Other clients get the problem document.
        body_file: Text,
        /// Further response headers, by name.
        headers: MapOf<Text> => FIELD,
        /// A URL for the `Location` header: clients are redirected, with status 303 unless `status` is another
        /// redirect.
        redirect: Text,
    }
    short {
        number => "{status: $}",
        url => "{redirect: $}",
        anything => "{body: $}",
    }
    rules {
        grammar::not_both("body", "body_file"),
        grammar::only_redirects(),
    }
}

/// The status of a denial.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status(pub http::StatusCode);

impl ScalarValue for Status {
    const EXPECTED: &'static str = "a status such as `429`";

    fn parse(text: &str) -> Result<Self, InvalidValue> {
        let refused = || {
            InvalidValue::with(
                format!("`{text}` is not the status of a denial"),
                "write one from 200 to 599, such as `429`",
            )
        };
        let status = text.parse::<http::StatusCode>().map_err(|_| refused())?;
        match status.as_u16() {
            204 | 205 | 304 => Err(InvalidValue::with(
                format!("a response with status {text} has no body"),
                "a denial has a body: write a status such as `429` or `403`",
            )),
            200..=599 => Ok(Self(status)),
            _ => Err(refused()),
        }
    }

    fn schema() -> Value {
        let bodiless = [204, 205, 304];
        json!({
            "title": "number",
            "type": ["integer", "string"],
            "minimum": 200,
            "maximum": 599,
            "not": { "enum": bodiless },
            "pattern": grammar::or_variable("20[0-36-9]|30[0-35-9]|2[1-9][0-9]|3[1-9][0-9]|[45][0-9]{2}"),
        })
    }
}
