//! The `lists` and `access` sections, and references to lists.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::Compiler;
use super::reach::Reach;
use super::response::Found;
use crate::config::Diagnostic;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::Text;
use crate::config::raw::forms::OneOrMany;
use crate::config::raw::leaf::Problem;
use crate::config::source::Place;
use crate::decision::policy::Access;
use crate::decision::policy::PolicyList;
use crate::key::KeyPart;
use crate::key::Selector;
use crate::key::Spelling;
use crate::list::List;
use crate::list::ListId;
use crate::list::Members;
use crate::list::lines;
use crate::list::network;
use crate::spelling::nearest;

/// The lists of a configuration by name.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_name: HashMap<String, ListId>,
    /// By `ListId`; those with mistakes too, so that references to them are no further mistakes.
    lists: Vec<PolicyList>,
}

impl Lists {
    pub(super) fn compiled(self) -> Vec<PolicyList> {
        self.lists
    }
}

/// Where a list is referred to: not everything is known everywhere.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    /// `access` and `match.client`: before the route is known and the body read.
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
                let help = "that word is for clients that logged in before: give the list another name";
                self.mistakes.report(name.at, format!("a list cannot be called `{KNOWN_CLIENT}`"), help);
            }
            let checked = self.name(name);
            let Ok(id) = u16::try_from(lists.lists.len()) else {
                self.mistakes.report(
                    name.at,
                    format!("there are more than {} lists", u16::MAX),
                    "a configuration holds no more",
                );
                break;
            };
            let compiled = self.list(name, checked.unwrap_or_else(|| Arc::from("")), list);
            lists.by_name.insert(name.value.clone(), ListId(id));
            lists.lists.push(compiled);
        }
        lists
    }

    pub(super) fn access(&mut self, document: &Document, lists: &Lists) -> Access {
        let Some(access) = document.access.get() else { return Access::default() };
        Access {
            allow: self.references(&access.allow, lists, Use::BeforeRoute).unwrap_or_default(),
            deny: self.references(&access.deny, lists, Use::BeforeRoute).unwrap_or_default(),
        }
    }

    /// The lists that are named; `None`: the key is not there.
    pub(super) fn references(
        &mut self,
        names: &Field<OneOrMany<Text>>,
        lists: &Lists,
        place: Use,
    ) -> Option<Vec<ListId>> {
        if names.is_absent() {
            return None;
        }
        let names = names.get().map(|names| &names.items[..]).unwrap_or_default();
        Some(names.iter().filter_map(|name| self.reference(name, lists, place)).collect())
    }

    /// What a limit does not hold for: lists, and whether known clients are among it.
    pub(super) fn unless(
        &mut self,
        names: &Field<OneOrMany<Text>>,
        lists: &Lists,
        reach: Reach,
    ) -> (Vec<ListId>, bool) {
        let names = names.get().map(|names| &names.items[..]).unwrap_or_default();
        let (known, names): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.value == KNOWN_CLIENT);
        if let Some(name) = known.first() {
            self.check_known(name.at, reach);
        }
        let lists = names.into_iter().filter_map(|name| self.reference(name, lists, Use::Unless)).collect();
        (lists, !known.is_empty())
    }

    fn reference(&mut self, name: &Text, lists: &Lists, place: Use) -> Option<ListId> {
        let Some(id) = lists.by_name.get(&name.value) else {
            if name.value == KNOWN_CLIENT {
                let message = format!("`{KNOWN_CLIENT}` is no list: who is one shows when a login is tried");
                self.mistakes.report(name.at, message, "it may stand under `unless` on a limit");
                return None;
            }
            let mut known: Vec<&str> = lists.by_name.keys().map(String::as_str).collect();
            if place == Use::Unless && nearest(&name.value, &[KNOWN_CLIENT]).is_some() {
                known.push(KNOWN_CLIENT);
            }
            known.sort_unstable();
            self.unknown_name(name, "list", "lists", &known);
            return None;
        };
        if let Some(part) = &lists.lists[usize::from(id.0)].of {
            self.check_use(name, &part.selector, place);
        }
        Some(*id)
    }

    /// A list of what is not known yet would hold nobody.
    fn check_use(&mut self, name: &Text, selector: &Selector, place: Use) {
        let known_later = matches!(selector, Selector::Route | Selector::Capture(_));
        let reason = match place {
            Use::Unless => return,
            _ if selector.needs_body() => "is asked before the body is read",
            Use::BeforeRoute if known_later => "is asked before the route is known",
            Use::BeforeRoute | Use::BeforeBody => return,
        };
        self.mistakes.report(
            name.at,
            format!("the list `{}` holds values of `{selector}`, and this {reason}", name.value),
            "such a list may stand under `unless` on a limit",
        );
    }

    fn list(&mut self, name: &Text, checked: Arc<str>, list: &raw::list::List) -> PolicyList {
        let of = list.of.get().and_then(|part| self.key_part(part));
        if let (Some(KeyPart { selector: Selector::Device, .. }), Some(raw)) = (&of, list.of.get()) {
            let help = "name what clients present themselves, such as `header.x-api-key`";
            self.mistakes.report(raw.selector.at, "nobody can list devices: their ids are never shown", help);
        }
        // The client's address is what a list is of anyway.
        let of = of.filter(|part| !matches!(part.selector, Selector::ClientIp(_)));
        if list.addresses.is_absent() && list.file.is_absent() {
            let (message, help) = match &of {
                None => (
                    "has neither `addresses` nor `file`",
                    "add `addresses: [198.51.100.0/24]`, or `file:` with one entry a line",
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
                        format!("this list holds values of `{}`, not addresses", part.selector),
                        "remove `of`, or put the values into a `file`",
                    );
                }
                Members::Values(self.values(name, list, part))
            }
        };
        PolicyList { list: List { name: checked, members }, of }
    }

    fn networks(&mut self, list: &raw::list::List) -> Vec<IpNet> {
        let inline = list.addresses.get().map(|addresses| &addresses.items[..]).unwrap_or_default();
        let mut networks: Vec<_> = inline.iter().map(|network| network.value).collect();
        if let Some(Found { path, content }) = list.file.get().and_then(|file| self.file(file, "list")) {
            let mut wrong = 0;
            for entry in lines::entries(&content) {
                match network(entry.text) {
                    Ok(network) => networks.push(network),
                    Err(_) if wrong == MAX_WRONG_LINES => break,
                    Err(error) => {
                        wrong += 1;
                        let Problem { message, help } = Problem::from(error);
                        let line =
                            content.trim_start_matches('\u{feff}').lines().nth(entry.line - 1).unwrap_or_default();
                        let length = entry.text.chars().count();
                        let mut diagnostic = Diagnostic::new(&path, entry.line, entry.column, message);
                        diagnostic.help = Some(help);
                        self.mistakes.push(diagnostic.excerpt(line, length));
                    }
                }
            }
        }
        networks
    }

    fn values(&mut self, name: &Text, list: &raw::list::List, part: &KeyPart) -> crate::list::ValueSet {
        let Some(Found { content, .. }) = list.file.get().and_then(|file| self.file(file, "list")) else {
            return crate::list::ValueSet::default();
        };
        self.warn_of_example_values(name.at, lines::entries(&content).map(|entry| entry.text));
        lines::entries(&content).map(|entry| Cow::into_owned(part.as_compared(entry.text))).collect()
    }

    /// One selector with its options.
    pub(super) fn key_part(&mut self, part: &raw::limit::KeyPart) -> Option<KeyPart> {
        let selector = self.selector(&part.selector)?;
        let Some(options) = &part.options else {
            return Some(KeyPart { selector: self.filled(selector, None), spelling: Spelling::Usual });
        };
        let is_client = matches!(selector, Selector::ClientIp(_));
        if !is_client {
            self.misplaced(options.v4.key().or(options.v6.key()), "`v4` and `v6` are options of `client_ip`");
        }
        if !selector.normalises() {
            let message = format!("`raw` changes nothing about `{selector}`, which is taken as sent anyway");
            self.misplaced(options.raw.key(), &message);
        }
        let is_text = !matches!(
            selector,
            Selector::ClientIp(_)
                | Selector::Host
                | Selector::Method
                | Selector::Path
                | Selector::Route
                | Selector::Device
        );
        if !is_text {
            let message = format!("`{selector}` is no name of anybody, so it has no local part");
            self.misplaced(options.normalise.key(), &message);
        }
        let as_sent = options.raw.get().is_some_and(|raw| raw.value);
        if as_sent && let Some(key) = options.normalise.key() {
            let help = "remove one of the two: what is taken as sent has no local part";
            self.mistakes.report(key, "`normalise` beside `raw: true`", help);
        }
        let spelling = match options.normalise.get().map(|word| word.value) {
            Some(raw::limit::Normalise::LocalPart) => Spelling::LocalPart,
            None if as_sent => Spelling::AsSent,
            None => Spelling::Usual,
        };
        Some(KeyPart { selector: self.filled(selector, Some(options)), spelling })
    }

    fn misplaced(&mut self, key: Option<Place>, message: &str) {
        if let Some(at) = key {
            self.mistakes.report(at, message, "remove it");
        }
    }
}

/// The word under `unless` for clients that logged in before.
pub(super) const KNOWN_CLIENT: &str = "known_client";

/// A file with more wrong lines than this is another kind of file.
const MAX_WRONG_LINES: usize = 20;
