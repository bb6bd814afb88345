//! The `outcome` and `known_clients` of a route, as they are written.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::forms::MapOf;
use super::forms::OneOrList;
use super::limit::KeyPart;
use super::section::section;
use super::value::RawValue;
use super::value::Spanned;
use super::value::Text;
use super::words::words;
use crate::config::mistakes::Mistakes;
use crate::config::yaml::Content;
use crate::config::yaml::Node;
use crate::units::Span;

section! {
    /// What the application's answers mean. An answer that matches both `success` and `failure` is a failure.
    Outcome {
        /// What a success looks like.
        success: Matchers,
        /// What a failure looks like.
        failure: Matchers,
        /// The outcome of an answer that matches neither: `success`, `failure` or `neither`. Default: the opposite of
        /// the only one that is given, else `neither`.
        otherwise: Spanned<Otherwise>,
    }
}

section! {
    /// Conditions on an answer, all of which must hold.
    Matchers {
        /// Its status: `401`, `4xx`, `400-499`, or a list of them.
        status: OneOrList<Text>,
        /// Header names and globs for their values: `*` stands for any text, `?` for one character.
        header: MapOf<Text>,
        /// A glob for the name of a cookie that the answer sets, compared with case: `wordpress_logged_in_*`. Of a
        /// list, the answer must set one cookie for each.
        cookie: OneOrList<Text>,
        /// What its body contains, within the first `server.inspect_body` bytes: a text, or a regular expression
        /// written as `/.../`.
        body: Text,
        /// Dotted paths in its JSON body and the values there: `{error.code: bad_password}`.
        json: JsonValues,
    }
}

/// Dotted paths and the values there, written as in JSON, texts without quotes.
#[derive(Clone, Debug)]
pub struct JsonValues(pub MapOf<Text>);

impl RawValue for JsonValues {
    fn read(node: &Node, mistakes: &mut Mistakes) -> Option<Self> {
        let mut node = node.clone();
        if let Content::Map(entries) = &mut node.content {
            // Here `null` is a value.
            let nothing = entries.iter_mut().map(|(_, value)| value).filter(|value| value.content == Content::Nothing);
            nothing.for_each(|value| value.content = Content::Scalar("null".to_owned()));
        }
        MapOf::read(&node, mistakes).map(Self)
    }

    fn schema(_: &mut BTreeMap<&'static str, Value>) -> Value {
        json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "null"] } })
    }
}

words! {
    /// The outcome of answers that match neither side.
    Otherwise {
        "success" => Success,
        "failure" => Failure,
        "neither" => Neither,
    }
}

section! {
    /// Clients that have logged in before. Limits with `unless: [known_client]` do not apply to them.
    KnownClients {
        /// The selector of the user name: a client is known for the name under which it logged in. For instance
        /// `param.username`, or a list such as `[host, param.username]` where one route is for several sites.
        of: OneOrList<KeyPart>,
        /// With `by: address`: how many clients are remembered for each name, the latest first. Default: 5.
        remember: Spanned<u64>,
        /// How long a client stays known after its last success. Default: 90d.
        r#for: Spanned<Span>,
        /// How a known client is identified: by its `address` (default), or by a signed device `cookie`.
        by: Spanned<KnownBy>,
    }
    required {
        of => "write the selector of the user name: `of: param.username`",
    }
}

words! {
    /// How known clients are identified.
    KnownBy {
        "address" => Address,
        "cookie" => Cookie,
    }
}
