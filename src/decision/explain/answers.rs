//! What answers mean, and which clients they make known.

use serde::Serialize;
use serde::Serializer;

use super::part::KeyPartExplanation;
use super::part::explain_part;
use crate::decision::Policy;
use crate::key::Source;
use crate::outcome::Matchers;
use crate::outcome::OutcomeRule;
use crate::route::KnownBy;
use crate::route::KnownClients;
use crate::route::SessionRule;
use crate::route::Walk;
use crate::units::Span;

/// How answers are classified.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct OutcomeExplanation {
    /// `status 302, header location: /account*`: all conditions must hold.
    pub success: Option<String>,
    pub failure: Option<String>,
    /// The outcome of all other answers.
    pub otherwise: &'static str,
}

/// Which clients a success makes known.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KnownClientsExplanation {
    /// The user name, and what else tells accounts apart.
    #[serde(serialize_with = "one_or_list")]
    pub of: Vec<KeyPartExplanation>,
    /// `address` or `cookie`.
    pub by: &'static str,
    /// `90d`
    pub r#for: String,
}

/// One part alone, as `of` is written.
fn one_or_list<S: Serializer>(parts: &[KeyPartExplanation], serializer: S) -> Result<S::Ok, S::Error> {
    match parts {
        [only] => only.serialize(serializer),
        several => several.serialize(serializer),
    }
}

/// Where a success gives sessions.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct SignInExplanation {
    /// The parts that name the account.
    pub of: Vec<KeyPartExplanation>,
    /// `cookie sessionid`, `json.access_token`
    pub given_as: Vec<String>,
    /// `12h`
    pub r#for: String,
}

/// How the routes of a request classify its answer.
pub(super) struct AnswerRules<'p> {
    outcome: Option<&'p OutcomeRule>,
    known: Option<&'p KnownClients>,
    sessions: Option<&'p SessionRule>,
}

impl<'p> AnswerRules<'p> {
    pub(super) fn of(policy: &'p Policy, walk: &Walk) -> Self {
        let routes = || walk.collected.iter().map(|&route| policy.routes.get(route));
        Self {
            outcome: routes().find_map(|route| route.outcome.as_deref()),
            known: routes().find_map(|route| route.known_clients.as_ref()),
            sessions: routes().find_map(|route| route.sessions.as_ref()),
        }
    }

    /// Whether a route has `outcome`.
    pub(super) fn are_read(&self) -> bool {
        self.outcome.is_some()
    }

    pub(super) fn outcome(&self) -> Option<OutcomeExplanation> {
        self.outcome.map(|rule| OutcomeExplanation {
            success: rule.success.as_ref().map(matchers),
            failure: rule.failure.as_ref().map(matchers),
            otherwise: rule.otherwise.as_str(),
        })
    }

    pub(super) fn known_clients(&self, source: &Source<'_>) -> Option<KnownClientsExplanation> {
        self.known.map(|known| KnownClientsExplanation {
            of: known.of.parts.iter().map(|part| explain_part(part, source)).collect(),
            by: match known.by {
                KnownBy::Address => "address",
                KnownBy::Cookie => "cookie",
            },
            r#for: Span(known.keep).to_string(),
        })
    }

    pub(super) fn sign_in(&self, source: &Source<'_>) -> Option<SignInExplanation> {
        self.sessions.map(|rule| {
            let cookies = rule.cookies.iter().map(|name| format!("cookie {name}"));
            SignInExplanation {
                of: rule.of.parts.iter().map(|part| explain_part(part, source)).collect(),
                given_as: cookies.chain(rule.tokens.iter().map(|path| format!("json.{path}"))).collect(),
                r#for: Span(rule.keep).to_string(),
            }
        })
    }
}

/// What of a request to any route is looked up as a session: `cookie sessionid`, `bearer`.
pub(super) fn looked_up(policy: &Policy) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for carrier in policy.session_carriers.iter() {
        let name = carrier.cookies.as_ref().map_or_else(|| "bearer".to_owned(), |cookies| format!("cookie {cookies}"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The conditions that an answer must meet.
fn matchers(matchers: &Matchers) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(matchers.status.as_ref().map(|status| format!("status {status}")));
    words.extend(matchers.headers.iter().map(|(name, glob)| format!("header {name}: {glob}")));
    words.extend(matchers.cookies.iter().map(|name| format!("cookie {name}")));
    words.extend(matchers.body.as_ref().map(|pattern| format!("body {pattern}")));
    words.extend(matchers.json.iter().map(|(path, value)| format!("json {path}: {value}")));
    words.join(", ")
}
