//! The `sessions` of a route.

use std::sync::Arc;
use std::time::Duration;

use super::availability::Availability;
use super::compiler::Compiler;
use super::example_outcomes::SUCCESS;
use super::limit_context::Captures;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::Text;
use crate::config::raw::forms::OneOrList;
use crate::config::raw::sessions::Sessions;
use crate::key::KeySpec;
use crate::key::Selector;
use crate::key::SelectorSubject;
use crate::route::CookieNames;
use crate::route::SessionRule;
use crate::units::Span;

/// Whether a route has `sessions`, so that requests may have a `user`.
pub(super) fn are_learned(document: &Document) -> bool {
    match &document.routes {
        Field::Absent => false,
        Field::Invalid => true,
        Field::Given { value, .. } => value.items.iter().any(|route| !route.sessions.is_absent()),
    }
}

impl Compiler {
    /// What a success on a route makes a session.
    pub(super) fn sessions(
        &mut self,
        field: &Field<Sessions>,
        captures: Captures<'_>,
        availability: Availability,
    ) -> Option<SessionRule> {
        let raw = field.get()?;
        if !availability.succeeds() {
            self.mistakes.report(
                field.key().unwrap_or(raw.at),
                "nobody can sign in here: no answer of this route is a success",
                format!("add what a success looks like: `outcome: {{success: {SUCCESS}}}`"),
            );
        }
        if raw.cookies.is_absent() && raw.tokens.is_absent() {
            self.mistakes.report(
                field.key().unwrap_or(raw.at),
                "`sessions` has neither `cookies` nor `tokens`",
                "name the cookie of a session, such as `cookies: [sessionid]`, or where a token stands: `tokens: [json.access_token]`",
            );
        }
        let keep = self.span(&raw.r#for, DEFAULT_KEEP);
        if let Some(given) = raw.r#for.get().filter(|_| keep > LONGEST_KEEP.0) {
            let message = format!("`{}` is too long for a session", given.value);
            self.mistakes.report(
                given.at,
                message,
                format!("write at most `{LONGEST_KEEP}`: browsers keep no cookie longer"),
            );
        }
        let cookies = self.session_cookies(&raw.cookies);
        let tokens = self.session_tokens(&raw.tokens);
        let of = self.names(&raw.of, captures)?;
        self.check_account(raw.of.get()?, &of);
        let is_fresh = raw.fresh.get().is_none_or(|fresh| fresh.value);
        Some(SessionRule { of, cookies, tokens, keep, is_fresh })
    }

    /// Reports what names no account.
    fn check_account(&mut self, raw: &OneOrList<raw::limit::KeyPart>, of: &KeySpec) {
        for (raw, part) in raw.items.iter().zip(&of.parts) {
            let help = "name the field of the user name, such as `param.username`";
            match (&part.selector, part.selector.subject()) {
                (Selector::User, _) => {
                    let message = "`user` is what sessions tell, not what people sign in with";
                    self.mistakes.report(raw.selector.at, message, help);
                }
                (Selector::Host, _) if of.parts.len() > 1 => {}
                (selector, SelectorSubject::Request) => {
                    self.mistakes.report(raw.selector.at, format!("`{selector}` names no account"), help);
                }
                (_, SelectorSubject::Account | SelectorSubject::Client) => {}
            }
        }
    }

    fn session_cookies(&mut self, field: &Field<OneOrList<Text>>) -> Vec<CookieNames> {
        self.check_cookie_names(field, "cookies");
        let names = field.get().map(|names| &names.items[..]).unwrap_or_default();
        for name in names.iter().filter(|name| name.value.chars().all(|letter| matches!(letter, '*' | '?'))) {
            let message = format!("`{}` would take every cookie for a session", name.value);
            self.mistakes.report(name.at, message, "name those alone that tell the application who is signed in");
        }
        names.iter().map(|name| CookieNames::new(&name.value)).collect()
    }

    fn session_tokens(&mut self, field: &Field<OneOrList<Text>>) -> Arc<[Box<str>]> {
        let Some(raw) = field.get() else { return Arc::default() };
        if raw.items.is_empty() {
            let help = "write where one stands, such as `json.access_token`, or remove `tokens`";
            self.mistakes.report(raw.at, "the list of tokens is empty", help);
        }
        for text in &raw.items {
            let help = "write where the token stands in the JSON body of the answer: `json.access_token`";
            if self.refuse_glob(text, "a dotted path", help) {
                continue;
            }
            let path = text.value.strip_prefix("json.");
            if path.is_none_or(|path| path.split('.').any(str::is_empty)) {
                self.mistakes.report(text.at, format!("`{}` is not a dotted path in JSON", text.value), help);
            }
        }
        raw.items.iter().map(|text| text.value.strip_prefix("json.").unwrap_or_default().into()).collect()
    }
}

const DEFAULT_KEEP: Duration = Duration::from_secs(12 * 3600);

/// Browsers keep no cookie longer.
const LONGEST_KEEP: Span = Span(Duration::from_secs(400 * 86_400));
