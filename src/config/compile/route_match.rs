//! The `match` of a route.

use super::compiler::Compiler;
use super::default_names::entries;
use super::lists::ListUse;
use super::lists::Lists;
use crate::config::raw::Field;
use crate::config::raw::Text;
use crate::config::raw::forms::MapOf;
use crate::config::raw::forms::OneOrList;
use crate::config::raw::route::Conditions;
use crate::config::raw::route::Match;
use crate::glob::Glob;
use crate::head::FieldName;
use crate::route::Case;
use crate::route::Condition;
use crate::route::MethodSet;
use crate::route::PathPattern;
use crate::route::PathRegex;

impl Compiler {
    /// The condition of a route. Parts with mistakes are left out.
    pub(super) fn condition(&mut self, matched: &Match, case: Case, lists: &Lists) -> Condition {
        match matched {
            Match::Short(text) => self.parsed(text, Condition::short(&text.value, case)).unwrap_or_default(),
            Match::Long(conditions) => self.long_condition(conditions, case, lists),
        }
    }

    fn long_condition(&mut self, raw: &Conditions, case: Case, lists: &Lists) -> Condition {
        if let (Some(_), Some(at)) = (raw.path.get(), raw.path_regex.key()) {
            self.mistakes.report(at, "`path` and `path_regex` exclude each other", "keep one of the two");
        }
        if let Some(empty) = raw.client.get().filter(|client| client.items.is_empty()) {
            let help = "name a list, or remove `client`";
            self.mistakes.report(empty.at, "an empty `client` matches no client", help);
        }
        let path = raw.path.get().and_then(|text| self.parsed(text, PathPattern::new(&text.value, case)));
        let path_regex = raw
            .path_regex
            .get()
            .and_then(|text| self.regex(text, |text| PathRegex::new(text, case), PathRegex::compiled_bytes));
        Condition {
            methods: raw.methods.get().and_then(|methods| self.methods(methods)),
            host: raw.host.get().and_then(|text| self.parse(text)),
            path,
            path_regex,
            headers: self.header_globs(&raw.header),
            queries: self.named_globs(&raw.query, "the name of a parameter"),
            cookies: self.named_globs(&raw.cookie, "the name of a cookie"),
            client: self.references(&raw.client, lists, ListUse::BeforeRoute).unwrap_or_default(),
        }
    }

    fn methods(&mut self, raw: &OneOrList<Text>) -> Option<MethodSet> {
        if raw.items.is_empty() {
            let help = "name some, or remove `methods`";
            self.mistakes.report(raw.at, "an empty `methods` matches no request", help);
            return None;
        }
        let parsed: Vec<_> = raw.items.iter().map(|method| self.parse(method)).collect();
        parsed.into_iter().collect()
    }

    pub(super) fn header_globs(&mut self, field: &Field<MapOf<Text>>) -> Vec<(FieldName, Glob)> {
        let mut result = Vec::new();
        for (name, glob) in entries(field) {
            if self.refuse_glob(name, "the name of a header", VALUES_ARE_GLOBS) {
                continue;
            }
            let Ok(header) = name.value.parse() else {
                let help = "header names are letters, digits and dashes: `x-api-key`";
                self.mistakes.report(name.at, format!("`{}` is not a header name", name.value), help);
                continue;
            };
            result.push((header, Glob::new(&glob.value)));
        }
        result
    }

    fn named_globs(&mut self, field: &Field<MapOf<Text>>, what: &str) -> Vec<(Box<str>, Glob)> {
        let named = entries(field).iter().filter(|(name, _)| !self.refuse_glob(name, what, VALUES_ARE_GLOBS));
        named.map(|(name, glob)| (name.value.as_str().into(), Glob::new(&glob.value))).collect()
    }
}

const VALUES_ARE_GLOBS: &str = "write the whole name; the value after the colon may be a glob";
