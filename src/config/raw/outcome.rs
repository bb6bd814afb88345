//! What a route says about the application's answers: what they mean, and whom a success makes known.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::Raw;
use super::Spanned;
use super::Text;
use super::forms::Named;
use super::forms::OneOrMany;
use super::leaf::words;
use super::limit::KeyPart;
use super::section;
use crate::config::diagnostic::Mistakes;
use crate::config::yaml::Content;
use crate::config::yaml::Node;
use crate::units::Span;

section! {
    /// What the application's answers mean. Where both sides match it is a failure.
    Outcome {
        /// A success looks like this.
        success: Matchers,
        /// A failure looks like this.
        failure: Matchers,
        /// What answers are that neither side matches: `success`, `failure` or `neither`. Default: the opposite of the only side given, else `neither`.
        otherwise: Spanned<Otherwise>,
    }
}

section! {
    /// What an answer looks like: all of it must hold.
    Matchers {
        /// Its status: `401`, `4xx`, `400-499`, or a list of such.
        status: OneOrMany<Text>,
        /// Header name to glob: `*` stands for any text, `?` for one character.
        header: Named<Text>,
        /// The name of a cookie that it sets, as a glob, letters compared with case: `wordpress_logged_in_*`; of a list each.
        cookie: OneOrMany<Text>,
        /// What its body holds, within the first `server.inspect_body` bytes: a text, or a regular expression as `/.../`.
        body: Text,
        /// Dotted path in its JSON to the value there: `{error.code: bad_password}`.
        json: JsonValues,
    }
}

/// Dotted paths and the values there, spelt as JSON spells them, texts without quotes.
#[derive(Clone, Debug)]
pub struct JsonValues(pub Named<Text>);

impl Raw for JsonValues {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let mut node = node.clone();
        if let Content::Map(entries) = &mut node.content {
            // Here nothing is a value, too.
            let nothing = entries.iter_mut().map(|(_, value)| value).filter(|value| value.content == Content::Nothing);
            nothing.for_each(|value| value.content = Content::Scalar("null".to_owned()));
        }
        Named::read(&node, mistakes).map(Self)
    }

    fn schema(_: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "null"] } })
    }
}

words! {
    /// What answers are that match neither side.
    Otherwise {
        "success" => Success,
        "failure" => Failure,
        "neither" => Neither,
    }
}

section! {
    /// Clients that a success makes known; limits with `unless: [known_client]` do not hold for them.
    KnownClients {
        /// What they are known for, the selector of the user name: `param.username`.
        of: KeyPart,
        /// With `by: address`: so many clients for each name, the latest. Default: 5.
        remember: Spanned<u64>,
        /// For so long after the last success. Default: 90d.
        r#for: Spanned<Span>,
        /// What they are recognised by: their `address` (default), or a signed device `cookie`.
        by: Spanned<KnownBy>,
    }
    required {
        of => "say what clients are known for: `of: param.username`",
    }
}

words! {
    /// What known clients are recognised by.
    KnownBy {
        "address" => Address,
        "cookie" => Cookie,
    }
}
