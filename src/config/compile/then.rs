//! The `then` of a limit.

use std::path::Path;
use std::time::Duration;
use std::{fs, io, iter};

use bytes::Bytes;
use http::HeaderValue;

use crate::config::compile::document::{Compiler, NamedFile};
use crate::config::compile::record::Channels;
use crate::config::diagnostic::Diagnostic;
use crate::config::raw;
use crate::config::raw::forms::OneOrList;
use crate::config::raw::then::{Actions, Status};
use crate::config::raw::{Field, Spanned, Text, grammar};
use crate::gateway::languages::Language;
use crate::gateway::pages::{InvalidMark, OperatorPages, PageKind, Placeholder, Template};
use crate::rules::limit::action::DenyBody;
use crate::rules::limit::{Action, DenyResponse, Ladder, Then};
use crate::wire::head::{FieldName, KnownName};
use crate::words::files;
use crate::words::files::{LastSeen, WatchedFile};
use crate::words::units::Span;

/// Browsers, proxies and people give up long before.
const LONGEST_WAIT: Span = grammar::HELD_FOR.longest();

/// A longer ban should be the decision of an operator.
const LONGEST_BAN: Span = grammar::BAN.longest();

impl Compiler {
    pub(super) fn then(&mut self, limit: &raw::limit::Limit, channels: &Channels) -> Then {
        let Some(raw::then::Then::Long(actions)) = limit.then.get() else { return Then::default() };
        self.refuse_several(actions);
        if !limit.concurrent.is_absent() {
            self.refuse_over_slots(actions);
        }
        Then { action: self.action(actions), notify: self.notified(&actions.notify, channels) }
    }

    fn action(&mut self, actions: &Actions) -> Action {
        let deny = self.response(&actions.deny);
        let delay = self.wait(&actions.delay, "delay");
        let tarpit = self.wait(&actions.tarpit, "tarpit");
        let ban = actions.ban.get().and_then(|lengths| self.ladder(lengths));
        if let Some(ladder) = ban {
            return Action::Ban(ladder);
        }
        match (tarpit, delay) {
            (Some(span), _) => Action::Tarpit(span),
            (None, Some(span)) => Action::Delay(span),
            (None, None) if actions.challenge.get().is_some() => Action::Challenge,
            // Without settings of its own it is the response of the route.
            (None, None) => Action::Deny(deny.filter(|deny| *deny != DenyResponse::default()).map(Box::new)),
        }
    }

    /// A limit has one action.
    fn refuse_several(&mut self, actions: &Actions) {
        let mut given: Vec<_> = actions.given().map(|(word, at)| (at, word)).collect();
        given.sort_unstable();
        if let Some(((_, first), others)) = given.split_first() {
            for (at, other) in others {
                self.mistakes.report(
                    *at,
                    format!("`then` has both `{first}` and `{other}`: a limit has one action"),
                    "write two limits, one with each: if both are reached, the more severe action applies",
                );
            }
        }
    }

    /// A concurrency slot comes back by itself, so there is nothing that a ban could punish or a challenge could buy.
    fn refuse_over_slots(&mut self, actions: &Actions) {
        for (at, word) in [(actions.ban.key(), "ban"), (actions.challenge.key(), "challenge")] {
            if let Some(at) = at {
                self.mistakes.report(
                    at,
                    format!("`{word}` has no meaning with `concurrent`, which counts requests in flight"),
                    format!("write a limit with a `rate` that does `{word}`"),
                );
            }
        }
    }

    /// How long a request is held.
    fn wait(&mut self, field: &Field<Spanned<Span>>, word: &str) -> Option<Duration> {
        let Spanned { value: span, at } = field.get()?;
        if span.0.is_zero() {
            self.mistakes.report(*at, format!("a `{word}` of zero has no effect"), "write one such as `2s` or `20s`");
        } else if *span > LONGEST_WAIT {
            let help = format!("write at most `{LONGEST_WAIT}`; clients hang up before that, use `ban` instead");
            self.mistakes.report(*at, format!("a `{word}` of {span} is too long"), help);
        }
        Some(span.0)
    }

    fn ladder(&mut self, raw: &OneOrList<Spanned<Span>>) -> Option<Ladder> {
        let mut before: Option<Span> = None;
        for Spanned { value: span, at } in &raw.items {
            if span.0.is_zero() {
                self.mistakes.report(*at, "a `ban` of zero has no effect", "write one such as `15m`");
            } else if *span > LONGEST_BAN {
                let help = format!(
                    "write at most `{LONGEST_BAN}`; to refuse a client for ever, put it on a list under `access.deny`"
                );
                self.mistakes.report(*at, format!("a `ban` of {span} is too long"), help);
            } else if let Some(before) = before.filter(|before| before >= span) {
                let message = format!("each further ban must be longer, and {span} is not longer than {before}");
                self.mistakes.report(*at, message, "write increasing lengths: `[15m, 1h, 24h]`");
            }
            before = Some(*span);
        }
        if raw.is_empty() {
            self.mistakes.report(raw.at, "an empty `ban` has no length", "write a length: `ban: 15m`");
        }
        if !self.takes_ban_steps(raw.items.len(), raw.at) {
            return None;
        }
        Ladder::new(raw.items.iter().map(|length| length.value.0).collect())
    }
}

// Deny responses.

/// Headers for framing, caching and `Retry-After`, which the gateway sets itself.
const SET_BY_GATEWAY: &[KnownName] = &[
    KnownName::CONNECTION,
    KnownName::CONTENT_LENGTH,
    KnownName::TRANSFER_ENCODING,
    KnownName::UPGRADE,
    KnownName::TRAILER,
    KnownName::TE,
    KnownName::RETRY_AFTER,
    KnownName::CACHE_CONTROL,
];

impl Compiler {
    pub(super) fn response(&mut self, response: &Field<raw::then::DenyResponse>) -> Option<DenyResponse> {
        response.get().map(|response| self.deny_response(response))
    }

    pub(super) fn deny_response(&mut self, response: &raw::then::DenyResponse) -> DenyResponse {
        if let (Some(at), Some(_)) = (response.body_file.key(), response.body.key()) {
            self.mistakes.report(
                at,
                "`body` and `body_file` exclude each other",
                "`body` is sent to every client as it is, `body_file` is a page for browsers: keep one of the two",
            );
        }
        let headers = self.response_headers(response);
        let redirect = response.redirect.get().and_then(|target| self.redirect(target));
        let status = response.status.get();
        if let (Some(_), Some(Spanned { value: Status(status), at })) = (&redirect, status)
            && !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
        {
            self.mistakes.report(
                *at,
                format!("a response with status {} does not redirect", status.as_u16()),
                "write 303 or another redirect, or remove `status`: with `redirect` it is 303",
            );
        }
        let body = self.body(response, &headers);
        // The content type is kept with the body.
        let headers = headers.into_iter().filter(|(name, _)| body.is_none() || !is_content_type(name)).collect();
        DenyResponse { status: status.map(|status| status.value.0), body, headers, redirect }
    }

    fn body(&mut self, response: &raw::then::DenyResponse, headers: &[(FieldName, HeaderValue)]) -> Option<DenyBody> {
        if let Some(file) = response.body_file.get() {
            let NamedFile { content, .. } = self.file(file, "page")?;
            return Some(DenyBody::Page(Bytes::from(content)));
        }
        let body = response.body.get()?;
        let given = headers.iter().find(|(name, _)| is_content_type(name)).map(|(_, value)| value.clone());
        let content_type = given.unwrap_or_else(|| HeaderValue::from_static(guessed_type(&body.value)));
        Some(DenyBody::Verbatim { content_type, content: Bytes::from(body.value.clone()) })
    }

    fn response_headers(&mut self, response: &raw::then::DenyResponse) -> Vec<(FieldName, HeaderValue)> {
        let Some(named) = response.headers.get() else { return Vec::new() };
        let mut headers: Vec<(FieldName, HeaderValue)> = Vec::new();
        for (name, value) in &named.entries {
            if self.refuse_glob(name, "the name of a header", "write the whole name, such as `x-denied-by`") {
                continue;
            }
            let Ok(header) = name.value.parse::<FieldName>() else {
                let help = "header names are letters, digits and dashes: `x-denied-by`";
                self.mistakes.report(name.at, format!("`{}` is not a header name", name.value), help);
                continue;
            };
            if SET_BY_GATEWAY.iter().any(|known| header == (*known).into()) {
                let help = "remove it: portcullis writes this header itself";
                self.mistakes.report(name.at, format!("`{}` cannot be set here", name.value), help);
                continue;
            }
            if headers.iter().any(|(other, _)| *other == header) {
                let help = "names of headers are compared without case: keep one of the two";
                self.mistakes.report(name.at, format!("the header `{}` is given twice", name.value), help);
                continue;
            }
            let Ok(content) = HeaderValue::from_str(&value.value) else {
                let help = "header values are one line of visible ASCII characters";
                self.mistakes.report(value.at, format!("this is not a value for the header `{header}`"), help);
                continue;
            };
            headers.push((header, content));
        }
        headers
    }

    fn redirect(&mut self, target: &Text) -> Option<HeaderValue> {
        let text = target.value.as_str();
        let is_place = text.starts_with('/') || text.starts_with("https://") || text.starts_with("http://");
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        match HeaderValue::from_str(text) {
            Ok(value) if is_place && is_plain => Some(value),
            _ => {
                let help = "write a path such as `/slow-down`, or a URL such as `https://status.example.com/`";
                self.mistakes.report(target.at, format!("`{text}` is not an address to redirect to"), help);
                None
            }
        }
    }
}

// The pages of operators.

/// A page is copied for each answer. This is room for one with its images inside.
const MAX_PAGE_KIB: u64 = 512;

/// A directory with more files is not one for pages.
const MAX_PAGE_FILES: usize = 10_000;

impl Compiler {
    pub(super) fn pages(&mut self, document: &raw::Document) -> OperatorPages {
        let mut pages = OperatorPages::default();
        let Some(folder) = document.pages.get() else { return pages };
        let path = self.base.join(&folder.value);
        // A page that comes later is a change. The directory itself is not watched: programs may write other files there.
        let absent = page_file_names().map(|name| WatchedFile::as_it_is(&path.join(name)));
        self.files.extend(absent.filter(|file| file.seen == LastSeen::As(None)));
        let names = match page_names(&path) {
            Ok(names) => names,
            Err(error) => {
                let message = format!("cannot read the directory `{}`: {}", path.display(), files::describe(&error));
                self.mistakes.report(
                    folder.at,
                    message,
                    "name a directory with a page of your own, such as denied.html",
                );
                return pages;
            }
        };
        if names.is_empty() {
            let message = format!("the directory `{}` holds no page", path.display());
            let help = "put denied.html or error.html there, or one in a language, such as denied.de.html";
            self.mistakes.report(folder.at, message, help);
        }
        for name in names {
            self.add_page(&mut pages, folder, &path.join(&name), &name);
        }
        pages
    }

    fn add_page(&mut self, pages: &mut OperatorPages, folder: &Text, path: &Path, name: &str) {
        let Some((kind, language)) = page_of(name) else {
            let languages = Language::ALL.map(Language::tag).join(", ");
            let mistake = Diagnostic::new(path, 1, 1, format!("`{name}` is in no language that the gateway knows"));
            self.mistakes.push(mistake.help(format!(
                "name it denied.html or error.html, or with one of these languages between: {languages}"
            )));
            return;
        };
        let named = Text { value: format!("{}/{name}", folder.value), at: folder.at };
        let Some(NamedFile { content, .. }) = self.file(&named, "page") else { return };
        if content.len() as u64 > MAX_PAGE_KIB << 10 {
            let mistake = Diagnostic::new(path, 1, 1, format!("the page is larger than {MAX_PAGE_KIB} KiB"));
            self.mistakes.push(mistake.help("every denied browser gets it: make its images smaller"));
            return;
        }
        match Template::parse(&content, Placeholder::from_name) {
            Ok(page) => pages.add(kind, language, page),
            Err(InvalidMark { name, at }) => {
                let message = match name {
                    Some(name) => format!("unknown placeholder `{name}`"),
                    None => "a placeholder without an end: `{{` is not followed by `}}`".to_owned(),
                };
                let known = Placeholder::NAMES.map(|name| format!("{{{{{name}}}}}")).join(", ");
                let (line, column) = position(&content, at);
                self.mistakes
                    .push(Diagnostic::new(path, line, column, message).help(format!("a page may have {known}")));
            }
        }
    }
}

/// The names that a page may have.
fn page_file_names() -> impl Iterator<Item = String> {
    let tags = Language::ALL.map(|language| format!(".{}", language.tag()));
    let endings = iter::once(String::new()).chain(tags);
    endings.flat_map(|ending| ["denied", "error"].map(|kind| format!("{kind}{ending}.html")))
}

/// The names of the files in a directory that are meant as pages.
fn page_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)?.take(MAX_PAGE_FILES) {
        let stem_of_page = |stem: &str| matches!(stem.split('.').next(), Some("denied" | "error"));
        let is_page = |name: &String| name.strip_suffix(".html").is_some_and(stem_of_page);
        names.extend(entry?.file_name().into_string().ok().filter(is_page));
    }
    names.sort();
    Ok(names)
}

/// What the page of that name is for; `None`: its language is not known.
fn page_of(name: &str) -> Option<(PageKind, Option<Language>)> {
    let stem = name.strip_suffix(".html")?;
    let (kind, language) = stem.split_once('.').map_or((stem, None), |(kind, tag)| (kind, Some(tag)));
    let kind = if kind == "denied" { PageKind::Denied } else { PageKind::Error };
    match language {
        None => Some((kind, None)),
        Some(tag) => Language::ALL.into_iter().find(|known| known.tag() == tag).map(|known| (kind, Some(known))),
    }
}

/// The line and the column of a byte, from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn is_content_type(name: &FieldName) -> bool {
    *name == KnownName::CONTENT_TYPE.into()
}

/// The content type of an inline body without a `content-type` header.
fn guessed_type(body: &str) -> &'static str {
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok();
    match body.trim_start().chars().next() {
        Some('<') => "text/html; charset=utf-8",
        Some('{' | '[') if is_json() => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_an_inline_body_is_guessed() {
        assert_eq!(guessed_type("\n<!doctype html><p>Slow down"), "text/html; charset=utf-8");
        assert_eq!(guessed_type(r#"{"error": "slow down"}"#), "application/json");
        assert_eq!(guessed_type("{slow down}"), "text/plain; charset=utf-8");
        assert_eq!(guessed_type("slow down"), "text/plain; charset=utf-8");
        assert_eq!(guessed_type(""), "text/plain; charset=utf-8");
    }
}
