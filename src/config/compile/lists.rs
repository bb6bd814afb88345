//! The `lists` and `access` sections, and references to lists.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::availability::Availability;
use crate::config::compile::document::{Compiler, NamedFile};
use crate::config::raw::forms::OneOrList;
use crate::config::raw::scalar::network_or_help;
use crate::config::raw::{Document, Field, InvalidValue, Text};
use crate::config::{Diagnostic, raw};
use crate::rules::client::Reputation;
use crate::rules::decision::policy::{Access, PolicyList};
use crate::rules::key::{KeyPart, Selector};
use crate::rules::list;
use crate::rules::list::{List, ListId, Members};
use crate::wire::crowdsec::ListSource;
use crate::words::units::{counted, nearest};

/// The lists of a configuration by name.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_name: HashMap<String, ListId>,
    /// By `ListId`. Lists with mistakes are here too, so that references to them are not reported as well.
    compiled: Vec<PolicyList>,
    /// By the number in `Members::Followed`. Lists with mistakes are left out.
    sources: Vec<ListSource>,
}

impl Lists {
    pub(super) fn compiled(self) -> (Vec<PolicyList>, Vec<ListSource>) {
        (self.compiled, self.sources)
    }
}

/// When a list is looked up. Not every selector has a value by then.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ListUse {
    /// `access.allow`: before the route is known and the body read.
    Allow,
    /// `access.deny` and `match.client`: as early.
    BeforeRoute,
    /// `only`: before the body is read.
    BeforeBody,
    Unless,
}

impl Compiler {
    pub(super) fn lists(&mut self, document: &Document) -> Lists {
        let mut lists = Lists::default();
        let Some(entries) = document.lists.get() else { return lists };
        for (name, list) in &entries.entries {
            if name.value == KNOWN_CLIENT {
                let help = "that word stands for clients that logged in before: rename the list";
                self.mistakes.report(name.at, format!("a list cannot be called `{KNOWN_CLIENT}`"), help);
            }
            let checked = self.name(name);
            let Ok(id) = u16::try_from(lists.compiled.len()) else {
                self.mistakes.report(
                    name.at,
                    format!("there are more than {} lists", u16::MAX),
                    "a configuration holds no more",
                );
                break;
            };
            let compiled = self.list(name, checked.unwrap_or_else(|| Arc::from("")), list, &mut lists.sources);
            lists.by_name.insert(name.value.clone(), ListId(id));
            lists.compiled.push(compiled);
        }
        lists
    }

    pub(super) fn access(&mut self, document: &Document, lists: &Lists) -> Access {
        let Some(access) = document.access.get() else { return Access::default() };
        Access {
            allow: self.references(&access.allow, lists, ListUse::Allow).unwrap_or_default(),
            deny: self.references(&access.deny, lists, ListUse::BeforeRoute).unwrap_or_default(),
        }
    }

    /// The lists of a key; `None`: the key is absent.
    pub(super) fn references(
        &mut self,
        names: &Field<OneOrList<Text>>,
        lists: &Lists,
        place: ListUse,
    ) -> Option<Vec<ListId>> {
        if names.is_absent() {
            return None;
        }
        let names = names.get().map(|names| &names.items[..]).unwrap_or_default();
        Some(names.iter().filter_map(|name| self.reference(name, lists, place)).collect())
    }

    /// The exceptions of a limit: lists, and whether known clients are excepted.
    pub(super) fn unless(
        &mut self,
        names: &Field<OneOrList<Text>>,
        lists: &Lists,
        availability: Availability,
    ) -> (Vec<ListId>, bool) {
        let names = names.get().map(|names| &names.items[..]).unwrap_or_default();
        let (known, names): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.value == KNOWN_CLIENT);
        if let Some(name) = known.first() {
            self.check_known(name.at, availability);
        }
        let lists = names.into_iter().filter_map(|name| self.reference(name, lists, ListUse::Unless)).collect();
        (lists, !known.is_empty())
    }

    fn reference(&mut self, name: &Text, lists: &Lists, place: ListUse) -> Option<ListId> {
        let Some(id) = lists.by_name.get(&name.value) else {
            if name.value == KNOWN_CLIENT {
                let message = format!(
                    "`{KNOWN_CLIENT}` is not a list: the gateway knows such clients only when a login is tried"
                );
                self.mistakes.report(name.at, message, "write it under `unless` of a limit");
                return None;
            }
            let mut known: Vec<&str> = lists.by_name.keys().map(String::as_str).collect();
            if place == ListUse::Unless && nearest(&name.value, &[KNOWN_CLIENT]).is_some() {
                known.push(KNOWN_CLIENT);
            }
            known.sort_unstable();
            self.unknown_name(name, "list", "lists", &known);
            return None;
        };
        let list = &lists.compiled[usize::from(id.0)];
        if let Some(part) = &list.of {
            self.check_use(name, &part.selector, place);
        }
        let frees = matches!(place, ListUse::Allow | ListUse::BeforeBody | ListUse::Unless);
        if frees && matches!(list.list.members, Members::Followed(_)) {
            let message =
                format!("the list `{}` has the addresses that CrowdSec bans, and this lets them in", name.value);
            self.mistakes.report(
                name.at,
                message,
                "write such a list under `access.deny`, or under `client` of a `match`",
            );
        }
        Some(*id)
    }

    /// Reports a list whose selector has no value yet: it would never match.
    fn check_use(&mut self, name: &Text, selector: &Selector, place: ListUse) {
        let known_later = matches!(selector, Selector::Route | Selector::Capture(_));
        let reason = match place {
            ListUse::Unless => return,
            _ if selector.needs_body() => "is decided before the body is read",
            ListUse::Allow | ListUse::BeforeRoute if selector.is_verified() => "is decided before tokens are verified",
            ListUse::Allow | ListUse::BeforeRoute if known_later => "is decided before the route is known",
            ListUse::Allow | ListUse::BeforeRoute | ListUse::BeforeBody => return,
        };
        self.mistakes.report(
            name.at,
            format!("the list `{}` contains values of `{selector}`, and this {reason}", name.value),
            "write such a list under `unless` of a limit",
        );
    }

    fn list(
        &mut self,
        name: &Text,
        checked: Arc<str>,
        list: &raw::document::List,
        sources: &mut Vec<ListSource>,
    ) -> PolicyList {
        if list.crowdsec.key().is_some() {
            let members = self.followed(name, &checked, list, sources);
            return PolicyList { list: List { name: checked, members }, of: None };
        }
        let of = list.of.get().and_then(|part| self.key_part(part));
        if let (Some(KeyPart { selector: Selector::Device, .. }), Some(raw)) = (&of, list.of.get()) {
            let help = "name a value that clients send, such as `header.x-api-key`";
            self.mistakes.report(raw.selector.at, "a list cannot contain devices: their ids are never shown", help);
        }
        if let (Some(KeyPart { selector: Selector::Descriptor(_), .. }), Some(raw)) = (&of, list.of.get()) {
            let help = "name the values at the limit: `descriptor: {user: gold*}`, or `except: {user: [root]}`";
            self.mistakes.report(raw.selector.at, "a list cannot contain values of descriptors", help);
        }
        if let (Some(KeyPart { selector: Selector::User, .. }), Some(raw)) = (&of, list.of.get()) {
            let help = "name what people log in with, such as `param.username`, or a claim such as `jwt.sub`";
            self.mistakes.report(
                raw.selector.at,
                "a list cannot contain accounts: their marks are nothing to write",
                help,
            );
        }
        if let (Some(KeyPart { selector: Selector::First(_), .. }), Some(raw)) = (&of, list.of.get()) {
            let help = "name one of them, and make a list of its own for each other";
            self.mistakes.report(raw.selector.at, "a list contains values of one selector", help);
        }
        // A list contains client addresses by default.
        let of = of.filter(|part| !matches!(part.selector, Selector::ClientIp(_)));
        let has_nothing = list.addresses.is_absent() && list.file.is_absent() && list.crowdsec.is_absent();
        if has_nothing && !self.mistakes.is_unsure(list.at) {
            let (message, help) = match &of {
                None => (
                    "has neither `addresses`, `file` nor `crowdsec`",
                    "add `addresses: [10.1.2.0/24]`, or `file:` with one entry a line",
                ),
                Some(_) => ("has no `file`", "add `file:` with one value a line"),
            };
            self.mistakes.report(name.at, format!("the list `{}` {message}", name.value), help);
        }
        let members = match &of {
            None => {
                let networks = self.networks(list);
                self.warn_of_example_addresses(name.at, &networks);
                Members::Addresses(networks.into_iter().collect())
            }
            Some(part) => {
                if let Some(at) = list.addresses.key() {
                    self.mistakes.report(
                        at,
                        format!("this list contains values of `{}`, not addresses", part.selector),
                        "remove `of`, or put the values into a `file`",
                    );
                }
                Members::Values(self.values(name, list, part))
            }
        };
        PolicyList { list: List { name: checked, members }, of }
    }

    /// A list that follows a `CrowdSec` engine has no members of its own.
    fn followed(
        &mut self,
        name: &Text,
        checked: &Arc<str>,
        list: &raw::document::List,
        sources: &mut Vec<ListSource>,
    ) -> Members {
        for (key, at) in [("addresses", list.addresses.key()), ("file", list.file.key()), ("of", list.of.key())] {
            if let Some(at) = at {
                let message = format!("a list that follows CrowdSec has no `{key}`");
                self.mistakes.report(at, message, "move it to a list of its own: rules may name several");
            }
        }
        let number = sources.len();
        if number == Reputation::MOST_LISTS {
            let message = format!("there are more than {} lists that follow CrowdSec", Reputation::MOST_LISTS);
            self.mistakes.report(name.at, message, "a configuration holds no more");
        } else if let Some(raw) = list.crowdsec.get() {
            sources.extend(self.list_source(checked, raw));
        }
        Members::Followed(u8::try_from(number).unwrap_or(u8::MAX))
    }

    fn networks(&mut self, list: &raw::document::List) -> Vec<IpNet> {
        let inline = list.addresses.get().map(|addresses| &addresses.items[..]).unwrap_or_default();
        let mut networks: Vec<_> = inline.iter().map(|network| network.value).collect();
        if let Some(NamedFile { path, content }) = list.file.get().and_then(|file| self.file(file, "list")) {
            let (mut wrong, mut next_wrong) = (0, None);
            for entry in list::entries(&content) {
                match network_or_help(entry.text) {
                    Ok(network) => networks.push(network),
                    Err(_) if wrong >= MAX_WRONG_LINES => {
                        wrong += 1;
                        next_wrong.get_or_insert((entry.line, entry.column));
                    }
                    Err(InvalidValue { message, help }) => {
                        wrong += 1;
                        let line =
                            content.trim_start_matches('\u{feff}').lines().nth(entry.line - 1).unwrap_or_default();
                        let length = entry.text.chars().count();
                        let mut diagnostic = Diagnostic::new(&path, entry.line, entry.column, message);
                        diagnostic.help = Some(help);
                        self.mistakes.push(diagnostic.excerpt(line, length));
                    }
                }
            }
            if let Some((line, column)) = next_wrong {
                let more = counted(wrong - MAX_WRONG_LINES, "further line");
                let verb = if wrong - MAX_WRONG_LINES == 1 { "is" } else { "are" };
                let message = format!("{more} of this file, from here on, {verb} no address or network either");
                let mut diagnostic = Diagnostic::new(&path, line, column, message);
                diagnostic.help = Some("is this the right file? A list has one address or network a line".to_owned());
                self.mistakes.push(diagnostic);
            }
        }
        networks
    }

    fn values(&mut self, name: &Text, list: &raw::document::List, part: &KeyPart) -> list::ValueSet {
        let Some(NamedFile { content, .. }) = list.file.get().and_then(|file| self.file(file, "list")) else {
            return list::ValueSet::default();
        };
        self.warn_of_example_values(name.at, list::entries(&content).map(|entry| entry.text));
        let readings = |text| part.as_compared(text).unwrap_or_default();
        list::entries(&content).flat_map(|entry| readings(entry.text)).map(Cow::into_owned).collect()
    }
}

/// The word under `unless` for clients that logged in before.
pub(super) const KNOWN_CLIENT: &str = "known_client";

/// A file with more invalid lines is probably not a list: the others are counted.
const MAX_WRONG_LINES: usize = 20;
