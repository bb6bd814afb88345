//! The cookies of a browser.

use std::collections::BTreeMap;

use crate::support::Response;

/// Cookies by name, as a browser keeps them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jar(BTreeMap<String, String>);

impl Jar {
    /// Keeps what an answer sets, and drops what it takes away.
    pub(crate) fn take(&mut self, answer: &Response) {
        for line in answer.headers.all("set-cookie") {
            let (name, value) =
                line.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie is a pair");
            if line.contains("Max-Age=0") || line.contains("01 Jan 1970") || value.is_empty() {
                self.0.remove(name);
            } else {
                self.0.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// All cookies but those whose names hold this text.
    pub(crate) fn without(mut self, text: &str) -> Self {
        self.0.retain(|name, _| !name.contains(text));
        self
    }

    /// The header that sends them.
    pub(crate) fn header(&self) -> String {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }
}

/// What stands between two texts on a page.
#[track_caller]
pub(crate) fn between(page: &str, before: &str, after: &str) -> String {
    let found = page.split(before).nth(1).and_then(|rest| rest.split(after).next());
    found.unwrap_or_else(|| panic!("no {before} on the page: {page}")).to_owned()
}
