//! The `outcome` and `known_clients` of a route.

use std::sync::Arc;

use super::availability::{Availability, otherwise};
use crate::config::compile::document::Compiler;
use crate::config::compile::limits::Captures;
use crate::config::compile::record::Channels;
use crate::config::raw;
use crate::config::raw::forms::OneOrList;
use crate::config::raw::route::JsonValues;
use crate::config::raw::{Field, Text, grammar};
use crate::rules::key::{KeyPart, KeySpec, SelectorSubject};
use crate::rules::outcome::{BodyPattern, Matchers, OutcomeRule, StatusSet};
use crate::rules::route::KnownClients;
use crate::words::glob::Glob;
use crate::words::units::Span;

/// Browsers cut a longer `Max-Age` to this.
const LONGEST_KEEP: Span = grammar::KEPT.longest();

impl Compiler {
    pub(super) fn outcome(&mut self, field: &Field<raw::route::Outcome>) -> Option<Arc<OutcomeRule>> {
        let raw = field.get()?;
        if raw.success.is_absent() && raw.failure.is_absent() {
            let help = format!("add one of the two: `failure: {FAILURE}`, or `success: {SUCCESS}`");
            self.mistakes.report(raw.at, "`outcome` has neither `success` nor `failure`", help);
        }
        let success = raw.success.get().map(|matchers| self.matchers(matchers, "success"));
        let failure = raw.failure.get().map(|matchers| self.matchers(matchers, "failure"));
        Some(Arc::new(OutcomeRule { success, failure, otherwise: otherwise(raw) }))
    }

    fn matchers(&mut self, raw: &raw::route::Matchers, side: &str) -> Matchers {
        let given = [
            raw.status.is_absent(),
            raw.header.is_absent(),
            raw.cookie.is_absent(),
            raw.body.is_absent(),
            raw.json.is_absent(),
        ];
        if given.iter().all(|is_absent| *is_absent) {
            let help = "write what such an answer has, for example `{status: 401}`; `otherwise` is for all others";
            self.mistakes.report(raw.at, format!("an empty `{side}` matches every answer"), help);
        }
        Matchers {
            status: raw.status.get().and_then(|status| self.status(status)),
            headers: self.header_globs(&raw.header),
            cookies: self.cookies(&raw.cookie),
            body: raw.body.get().and_then(|text| self.regex(text, BodyPattern::parse, BodyPattern::memory_usage)),
            json: self.json_values(raw),
        }
    }

    fn status(&mut self, raw: &OneOrList<Text>) -> Option<StatusSet> {
        if raw.is_empty() {
            self.mistakes.report(
                raw.at,
                "an empty list of statuses matches no answer",
                "write one such as `401` or `4xx`",
            );
        }
        let sets: Vec<Option<StatusSet>> = raw.items.iter().map(|text| self.parse(text)).collect();
        sets.into_iter().collect()
    }

    fn cookies(&mut self, field: &Field<OneOrList<Text>>) -> Vec<Glob> {
        self.check_cookie_names(field, "cookie");
        let names = field.get().map(|names| &names.items[..]).unwrap_or_default();
        names.iter().map(|name| Glob::cased(&name.value)).collect()
    }

    /// Reports values that are neither the name of a cookie nor a glob for names. `key` is the key that they stand
    /// under.
    pub(super) fn check_cookie_names(&mut self, field: &Field<OneOrList<Text>>, key: &str) {
        let Some(raw) = field.get() else { return };
        if raw.is_empty() {
            self.mistakes.report(
                raw.at,
                "the list of cookies is empty",
                format!("name one such as `session`, or remove `{key}`"),
            );
        }
        for Text { value, at } in &raw.items {
            // A cookie name may contain `*`, but not `?`.
            let may_stand = |c: char| c.is_ascii_graphic() && !";,=\"\\()<>@:/[]{}".contains(c);
            if value.is_empty() || !value.chars().all(may_stand) {
                let help =
                    "write only its name, such as `session` or `wordpress_logged_in_*`; letters are compared with case";
                self.mistakes.report(*at, format!("`{value}` is not the name of a cookie"), help);
            }
        }
    }

    fn json_values(&mut self, raw: &raw::route::Matchers) -> Vec<(Box<str>, Box<str>)> {
        let Some(JsonValues(named)) = raw.json.get() else { return Vec::new() };
        if named.entries.is_empty() && self.mistakes.is_empty() {
            let help = "write a path and the value there: `{ok: false}`, or remove `json`";
            self.mistakes.report(named.at, "an empty `json` checks nothing", help);
        }
        for (path, _) in &named.entries {
            let help = "write the whole path: `error.code`; elements of lists are numbered from 0";
            if !self.refuse_glob(path, "a dotted path", help) && path.value.split('.').any(str::is_empty) {
                let help = "write names with dots between: `error.code`; elements of lists are numbered from 0";
                self.mistakes.report(path.at, format!("`{}` is not a dotted path", path.value), help);
            }
        }
        for (_, Text { value, at }) in &named.entries {
            // As long as its value: without quotes.
            let is_plain = at.length as usize == value.chars().count();
            if is_plain && let Some(meant) = other_boolean(value) {
                let message = format!("`{value}` is the text \"{value}\" here, and not `{meant}`");
                self.mistakes.warn(*at, message, format!("write `{meant}`; if the text is meant, write `\"{value}\"`"));
            }
        }
        named.entries.iter().map(|(path, value)| (path.value.as_str().into(), value.value.as_str().into())).collect()
    }

    /// The known clients of a route.
    pub(super) fn known_clients(
        &mut self,
        field: &Field<raw::route::KnownClients>,
        captures: Captures<'_>,
        availability: Availability,
        channels: &Channels,
    ) -> Option<KnownClients> {
        let raw = field.get()?;
        if !availability.succeeds() {
            self.mistakes.report(
                field.key().unwrap_or(raw.at),
                "no client can become known here: no answer of this route is a success",
                format!("add what a success looks like: `outcome: {{success: {SUCCESS}}}`"),
            );
        }
        let remember = self.count(&raw.remember).unwrap_or(KnownClients::REMEMBER);
        if let Some(given) = raw.remember.get().filter(|_| !grammar::REMEMBERED.contain(remember.get().into())) {
            let message = format!("`{remember}` clients for each name are too many to remember");
            self.mistakes.report(given.at, message, format!("write at most `{}`", grammar::REMEMBERED.most));
        }
        let keep = self.span(&raw.r#for, KnownClients::KEEP);
        if let Some(given) = raw.r#for.get().filter(|_| keep > LONGEST_KEEP.0) {
            let message = format!("`{}` is too long for a known client", given.value);
            self.mistakes.report(
                given.at,
                message,
                format!("write at most `{LONGEST_KEEP}`: browsers keep no cookie longer"),
            );
        }
        let notify = self.notified(&raw.notify, channels);
        let of = self.names(&raw.of, captures)?;
        Some(KnownClients {
            of,
            remember,
            keep,
            by: raw.by.get().map(|by| by.value).unwrap_or_default(),
            prefix: self.prefix,
            notify,
        })
    }
}

impl Compiler {
    /// The selectors of a user name, and of what else tells accounts apart.
    pub(super) fn names(
        &mut self,
        of: &Field<OneOrList<raw::limit::KeyPart>>,
        captures: Captures<'_>,
    ) -> Option<KeySpec> {
        let of = of.get()?;
        let mut parts: Vec<KeyPart> = Vec::with_capacity(of.items.len());
        for raw in &of.items {
            let Some(part) = self.captured_part(raw, captures) else { continue };
            if part.selector.subject() == SelectorSubject::Client {
                let message = format!("`{}` is the client itself, not the name it logs in with", part.selector);
                let help = "name the field of the user name, such as `param.username`";
                self.mistakes.report(raw.selector.at, message, help);
            }
            if parts.iter().any(|earlier| earlier.selector == part.selector) {
                let message = format!("this list has `{}` twice", part.selector);
                self.mistakes.report(raw.selector.at, message, "remove one of the two");
            }
            parts.push(part);
        }
        let is_complete = parts.len() == of.items.len();
        let is_name = |part: &KeyPart| part.selector.subject() != SelectorSubject::Request;
        if is_complete && !of.items.is_empty() && of.items.len() != 1 && !parts.iter().any(is_name) {
            let help = "add the field of the user name: `of: [host, param.username]`";
            self.mistakes.report(of.at, "this list has no user name", help);
        }
        if of.is_empty() {
            self.mistakes.report(
                of.at,
                "this list is empty",
                "write the selector of the user name: `of: param.username`",
            );
        }
        is_complete.then_some(KeySpec { parts, names: Vec::new() })
    }
}

/// The boolean that a word meant in YAML 1.1; in YAML 1.2 it is a text.
fn other_boolean(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "yes" | "on" => Some(true),
        "no" | "off" => Some(false),
        _ => None,
    }
}

// The outcomes that helps write as examples. None of them draws a warning.

/// How helps write a success: many applications redirect after a failure too, but not there.
pub(super) const SUCCESS: &str = "{status: 302, header: {location: \"/account*\"}}";

/// How helps write a failure.
pub(super) const FAILURE: &str = "{status: 401}";
