//! Which cookies and tokens are sessions of an account, and where requests carry them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::glob::Glob;
use crate::key::KeySpec;
use crate::key::Selector;

/// `sessions`: what a success gives the client is from then on a session of the account that the request named.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRule {
    /// The parts of the request that name the account.
    pub of: KeySpec,
    pub cookies: Vec<CookieNames>,
    /// Dotted paths of tokens in the JSON body of an answer.
    pub tokens: Arc<[Box<str>]>,
    /// How long a session is known after its last use.
    pub keep: Duration,
    /// A success gives the client a session that its request did not carry. Otherwise the application keeps the one that the
    /// request carries.
    pub is_fresh: bool,
}

/// The name of a cookie, or a glob for several names.
#[derive(Clone, Debug, PartialEq)]
pub enum CookieNames {
    One(Box<str>),
    Like { text: Box<str>, names: Glob },
}

/// What carries sessions in requests to any route: the cookies of all `sessions`, and the bearer where one has tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionCarriers(Vec<SessionCarrier>);

/// One kind of cookie, or the bearer, with sessions of one kind of accounts.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionCarrier {
    /// `None`: the bearer.
    pub cookies: Option<CookieNames>,
    /// Its accounts are those of one host. At another host its value is no session.
    pub is_of_host: bool,
}

impl SessionRule {
    /// Whether its accounts are those of the host that the request is for.
    pub fn is_of_host(&self) -> bool {
        self.of.parts.iter().any(|part| part.selector == Selector::Host)
    }

    /// What carries its sessions.
    fn carriers(&self) -> impl Iterator<Item = SessionCarrier> {
        let is_of_host = self.is_of_host();
        let bearer = (!self.tokens.is_empty()).then_some(None);
        let cookies = self.cookies.iter().cloned().map(Some).chain(bearer);
        cookies.map(move |cookies| SessionCarrier { cookies, is_of_host })
    }
}

impl CookieNames {
    /// A name; a glob where it has a `*` or a `?`.
    pub fn new(text: &str) -> Self {
        if !Glob::looks_like_glob(text) {
            return Self::One(text.into());
        }
        // Names are compared as `flattened` makes them.
        Self::Like { text: text.into(), names: Glob::new(&text.replace('.', "_")) }
    }
}

impl fmt::Display for CookieNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(text) | Self::Like { text, .. } => f.write_str(text),
        }
    }
}

impl SessionCarriers {
    /// Those of these rules, each once.
    pub fn of<'r>(rules: impl Iterator<Item = &'r SessionRule>) -> Self {
        let mut all = Vec::new();
        for carrier in rules.flat_map(SessionRule::carriers) {
            if !all.contains(&carrier) {
                all.push(carrier);
            }
        }
        Self(all)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &SessionCarrier> {
        self.0.iter()
    }

    /// Those that carry the sessions of a rule.
    pub fn of_rule(&self, rule: &SessionRule) -> impl Iterator<Item = &SessionCarrier> {
        rule.carriers().filter_map(|carrier| self.0.iter().find(|known| **known == carrier))
    }
}
