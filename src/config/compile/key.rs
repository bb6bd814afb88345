//! The keys of limits, and their selectors.

use crate::config::compile::document::Compiler;
use crate::config::compile::limits::{Captures, LimitContext};
use crate::config::raw;
use crate::config::raw::Text;
use crate::config::raw::forms::ListOf;
use crate::config::raw::limit::KeyOptions;
use crate::config::source::SourceRange;
use crate::rules::key::{
    InvalidSelector, KeyPart, KeySpec, NamePattern, NameSpelling, Selector, SelectorSubject, Spelling,
};
use crate::words::units::{listed, nearest};

impl Compiler {
    /// The key of a limit.
    pub(super) fn key(&mut self, limit: &raw::limit::Limit, context: LimitContext<'_>) -> Option<KeySpec> {
        let key = limit.key.get()?;
        let mut parts = Vec::with_capacity(key.items.len());
        for raw_part in &key.items {
            let Some(part) = self.limit_part(raw_part, context) else { continue };
            if parts.contains(&part) {
                let message = format!("this key has `{}` twice", part.selector);
                self.mistakes.report(raw_part.selector.at, message, "remove one of the two");
            }
            parts.push(part);
        }
        if limit.reset_on.get().is_some() {
            for part in &mut parts {
                if let Spelling::Name(name) = &mut part.spelling {
                    name.tells_others = true;
                }
            }
        }
        (parts.len() == key.items.len()).then_some(KeySpec { parts, names: Vec::new() })
    }

    /// A selector of a limit.
    pub(super) fn limit_part(&mut self, raw: &raw::limit::KeyPart, context: LimitContext<'_>) -> Option<KeyPart> {
        let part = self.captured_part(raw, context.captures)?;
        for selector in part.selector.choices() {
            self.check_device(raw.selector.at, selector, context.availability);
        }
        Some(part)
    }

    /// A selector on a route whose path has these captures.
    pub(super) fn captured_part(&mut self, raw: &raw::limit::KeyPart, captures: Captures<'_>) -> Option<KeyPart> {
        let part = self.key_part(raw)?;
        for selector in part.selector.choices() {
            self.check_place(&raw.selector, selector, captures);
        }
        Some(part)
    }

    /// Reports a selector that has no value where it stands.
    fn check_place(&mut self, text: &Text, selector: &Selector, captures: Captures<'_>) {
        match (selector, captures) {
            (Selector::Descriptor(_), Captures::Domain) => {}
            (selector @ Selector::Descriptor(_), _) => self.mistakes.report(
                text.at,
                format!("`{selector}` is an entry of a descriptor, and requests have none"),
                "move the limit to a route with `match: {domain: NAME}`",
            ),
            (selector, Captures::Domain) => self.mistakes.report(
                text.at,
                format!("`{selector}` is a part of a request, and a domain has descriptors instead"),
                "name an entry that the proxy sends, such as `descriptor.remote_address`",
            ),
            (Selector::Capture(name), _) => self.check_capture(text, name, captures),
            _ => {}
        }
    }

    /// One selector with its options.
    pub(super) fn key_part(&mut self, part: &raw::limit::KeyPart) -> Option<KeyPart> {
        if let Some(first) = &part.first {
            let selector = self.first(first)?;
            return Some(KeyPart { selector, spelling: Spelling::Usual });
        }
        let selector = self.selector(&part.selector)?;
        self.check_proven(part.selector.at, &selector);
        let Some(options) = &part.options else {
            return Some(KeyPart { selector: self.filled(selector, None), spelling: Spelling::Usual });
        };
        let is_client = matches!(selector, Selector::ClientIp(_));
        if !is_client {
            self.misplaced(options.v4.key().or(options.v6.key()), "`v4` and `v6` are options of `client_ip`");
        }
        if !selector.normalises() {
            let message = format!("`raw` has no effect on `{selector}`, whose values are not normalised like names");
            self.misplaced(options.raw.key(), &message);
        }
        if selector.subject() != SelectorSubject::Account || selector == Selector::User {
            let message = format!("`{selector}` is not a user name, so it has no local part");
            self.misplaced(options.normalise.key(), &message);
            let message = format!("`{selector}` is not a user name");
            self.misplaced(options.fold.key(), &message);
            self.misplaced(options.pattern.key(), &message);
        }
        let as_sent = options.raw.get().is_some_and(|raw| raw.value);
        let others =
            [("normalise", options.normalise.key()), ("fold", options.fold.key()), ("pattern", options.pattern.key())];
        for (name, key) in others {
            if let Some(key) = key.filter(|_| as_sent) {
                let help = "remove one of the two";
                self.mistakes.report(key, format!("`{name}` and `raw: true` exclude each other"), help);
            }
        }
        let local_part = options.normalise.get().is_some();
        let fold = options.fold.get().map(|fold| fold.value);
        let pattern = options.pattern.get().and_then(|pattern| self.pattern(pattern));
        let spelling = match (fold, pattern) {
            (None, None) if local_part => Spelling::LocalPart,
            (None, None) if as_sent => Spelling::AsSent,
            (None, None) => Spelling::Usual,
            (fold, pattern) => {
                Spelling::Name(Box::new(NameSpelling { local_part, fold, pattern, tells_others: false }))
            }
        };
        Some(KeyPart { selector: self.filled(selector, Some(options)), spelling })
    }

    /// A pattern that names must match.
    fn pattern(&mut self, text: &Text) -> Option<NamePattern> {
        let pattern = self.regex(text, NamePattern::new, NamePattern::memory_usage)?;
        if !pattern.can_match() {
            let message = format!("no name matches the pattern `{}`, so all of them share one key", text.value);
            self.mistakes.warn(text.at, message, "a pattern is for the whole name: `^` and `$` are not needed");
        }
        Some(pattern)
    }

    /// The selectors of `first`. Only the last one may have a value in every request.
    fn first(&mut self, first: &ListOf<raw::limit::KeyPart>) -> Option<Selector> {
        let mut choices: Vec<KeyPart> = Vec::with_capacity(first.items.len());
        for (place, raw) in first.items.iter().enumerate() {
            let at = raw.selector.at;
            if raw.first.is_some() {
                self.mistakes.report(at, "`first` stands within `first`", "write all selectors into one list");
                continue;
            }
            let Some(choice) = self.key_part(raw) else { continue };
            let is_last = place + 1 == first.items.len();
            if !is_last && choice.selector.is_never_missing() {
                let message = format!("every request has `{}`, so what stands behind it never counts", choice.selector);
                self.mistakes.report(at, message, "move it to the end of the list");
            }
            if matches!(choice.selector, Selector::Descriptor(_)) {
                let help = "write one limit for each: a limit meets only descriptors that have all entries of its key";
                self.mistakes.report(at, "entries of descriptors have no `first`", help);
            }
            if choices.iter().any(|earlier| earlier.selector == choice.selector) {
                let message = format!("this list has `{}` twice", choice.selector);
                self.mistakes.report(at, message, "remove one of the two");
            }
            choices.push(choice);
        }
        if first.items.len() < 2 {
            let help = "write several, such as `{first: [user, client_ip]}`";
            self.mistakes.report(first.at, "`first` chooses among several selectors", help);
        }
        (choices.len() == first.items.len()).then(|| Selector::First(choices.into()))
    }

    /// Reports a selector of something that nothing in the configuration proves.
    fn check_proven(&mut self, at: SourceRange, selector: &Selector) {
        match selector {
            Selector::User if !self.proofs.sessions => {
                let message = "the selector `user` needs to know who is signed in: no route has `sessions`";
                let help =
                    "add `sessions: {of: param.username, cookies: [sessionid]}` to the route where people log in";
                self.mistakes.report(at, message, help);
            }
            Selector::Jwt(_) if !self.proofs.jwt => {
                let message = format!("`{selector}` needs the keys that tokens are verified with: there is no `jwt`");
                self.mistakes.report(at, message, "add them at the top level: `jwt: {jwks_file: keys.json}`");
            }
            _ => {}
        }
    }

    fn misplaced(&mut self, key: Option<SourceRange>, message: &str) {
        if let Some(at) = key {
            self.mistakes.report(at, message, "remove it");
        }
    }

    pub(super) fn selector(&mut self, text: &Text) -> Option<Selector> {
        let help = match text.value.as_str() {
            "*" => "write `key: []` for one count of all requests",
            text if text.starts_with("descriptor.") => "name one, such as `descriptor.remote_address`",
            text if text.starts_with("param.") => "name one, such as `param.username`",
            _ => "name one, such as `header.x-api-key` or `param.username`",
        };
        if self.refuse_glob(text, "the name in a selector", help) {
            return None;
        }
        let error = match text.value.parse::<Selector>() {
            Ok(selector) => return Some(selector),
            Err(error) => error,
        };
        let help = match &error {
            InvalidSelector::Unknown(written) => selector_advice(written),
            InvalidSelector::Later(_) => {
                "`client_ip` counts clients, `{client_ip: {v4: 24, v6: 48}}` networks".to_owned()
            }
            InvalidSelector::Nameless(kind) if kind == "descriptor" => {
                "name it: `descriptor.remote_address`".to_owned()
            }
            InvalidSelector::Nameless(kind) if kind == "header" => "name it: `header.x-api-key`".to_owned(),
            InvalidSelector::Nameless(kind) => format!("name it: `{kind}.username`"),
            InvalidSelector::HeaderName(_) => {
                "header names are letters, digits and dashes: `header.x-api-key`".to_owned()
            }
        };
        let message = match &error {
            InvalidSelector::Nameless(kind) => format!("`{kind}` needs a name"),
            error => error.to_string(),
        };
        self.mistakes.report(text.at, message, help);
        None
    }

    /// The selector with its address prefixes filled in.
    pub(super) fn filled(&mut self, selector: Selector, options: Option<&KeyOptions>) -> Selector {
        match (selector, options) {
            (Selector::ClientIp(_), Some(options)) => Selector::ClientIp(Some(self.prefix(&options.v4, &options.v6))),
            (Selector::ClientIp(None), None) => Selector::ClientIp(Some(self.prefix)),
            (selector, _) => selector,
        }
    }

    fn check_capture(&mut self, text: &Text, name: &str, captures: Captures<'_>) {
        match captures {
            Captures::Nowhere => self.mistakes.report(
                text.at,
                format!("`path.{name}` needs a capture in a route's `match`, and this limit is on no route"),
                format!("move the limit to a route whose path contains `{{{name}}}`"),
            ),
            Captures::Named(names) if !names.iter().any(|known| known == name) => {
                let help = match nearest(name, &names.iter().map(String::as_str).collect::<Vec<_>>()) {
                    Some(near) => format!("did you mean `path.{near}`?"),
                    None => format!("capture it: `path: /users/{{{name}}}`"),
                };
                self.mistakes.report(text.at, format!("the route's path has no capture `{name}`"), help);
            }
            Captures::Named(_) | Captures::Domain | Captures::Unknown => {}
        }
    }
}

/// The selector of what nginx, HAProxy or Caddy has in a variable.
fn of_others(written: &str) -> Option<String> {
    let variable = written.strip_prefix('$').unwrap_or(written).trim_matches(['{', '}']);
    if let Some((_, selector)) = VARIABLES_OF_OTHERS.iter().find(|(of_others, _)| *of_others == variable) {
        return Some((*selector).to_owned());
    }
    let named = [("http_", "header."), ("cookie_", "cookie."), ("arg_", "query.")];
    named.iter().find_map(|(prefix, kind)| {
        let name = variable.strip_prefix(prefix).filter(|name| !name.is_empty())?;
        // nginx writes the names of headers with underscores.
        let name = if *kind == "header." { name.replace('_', "-") } else { name.to_owned() };
        Some(format!("{kind}{name}"))
    })
}

/// What others call what a selector is.
const VARIABLES_OF_OTHERS: [(&str, &str); 15] = [
    ("binary_remote_addr", "client_ip"),
    ("remote_addr", "client_ip"),
    ("realip_remote_addr", "client_ip"),
    ("remote_host", "client_ip"),
    ("http.request.remote.host", "client_ip"),
    ("src", "client_ip"),
    ("server_name", "host"),
    ("host", "host"),
    ("http_host", "host"),
    ("uri", "path"),
    ("request_uri", "path"),
    ("document_uri", "path"),
    ("request_method", "method"),
    ("remote_user", "basic.user"),
    ("http_authorization", "bearer"),
];

/// The help for an unknown selector: the probable intention.
fn selector_advice(written: &str) -> String {
    // nginx writes one variable behind the other.
    let variables: Vec<&str> = written.split('$').filter(|name| !name.is_empty()).collect();
    if written.starts_with('$') && variables.len() > 1 {
        let selectors: Option<Vec<_>> = variables.iter().map(|name| of_others(name)).collect();
        if let Some(selectors) = selectors {
            return format!("several selectors are a list: `key: [{}]`", selectors.join(", "));
        }
    }
    // HAProxy fetches a sample by a function.
    if let Some((fetch, name)) = written.strip_suffix(')').and_then(|call| call.split_once('(')) {
        let kind = match fetch.trim_start_matches("req.") {
            "hdr" | "fhdr" => Some("header"),
            "cook" | "cookie" => Some("cookie"),
            "url_param" | "urlp" => Some("query"),
            _ => None,
        };
        if let Some(kind) = kind {
            return format!("did you mean `{kind}.{}`?", name.to_lowercase());
        }
    }
    if written.contains([',', ' ', ';']) {
        return "several selectors are a list: `key: [client_ip, param.username]`".to_owned();
    }
    if matches!(written, "ip" | "address" | "client" | "remote_addr" | "client.ip" | "source_ip") {
        return "did you mean `client_ip`?".to_owned();
    }
    if let Some(selector) = of_others(written) {
        return format!("did you mean `{selector}`?");
    }
    let (kind, name) = written.split_once('.').map_or((written, None), |(kind, name)| (kind, Some(name)));
    let kinds: Vec<_> = Selector::FORMS.iter().map(|form| form.trim_end_matches('.')).collect();
    match (nearest(kind, &kinds), name) {
        (Some(near), Some(name)) if Selector::FORMS.contains(&format!("{near}.").as_str()) => {
            format!("did you mean `{near}.{name}`?")
        }
        (Some(near), None) => format!("did you mean `{near}`?"),
        _ => {
            let forms: Vec<_> = Selector::FORMS
                .iter()
                .map(|form| if form.ends_with('.') { format!("{form}N") } else { (*form).to_owned() })
                .collect();
            format!("selectors are {}", listed(&forms.iter().map(String::as_str).collect::<Vec<_>>()))
        }
    }
}
