//! The warnings of the configuration in force, and since when each holds.

use super::diagnostics::log_warnings;
use crate::clock::Timestamp;
use crate::config::Diagnostic;
use crate::record::advice::Advice;
use crate::record::advice::AdviceKind;

/// The warnings of the configuration in force. Each is logged when it begins to hold.
#[derive(Debug, Default)]
pub(super) struct KnownWarnings {
    known: Vec<(Diagnostic, Timestamp)>,
}

impl KnownWarnings {
    /// Of the configuration that the gateway starts with.
    pub(super) fn of(found: Vec<Diagnostic>, now: Timestamp) -> Self {
        let mut warnings = Self::default();
        warnings.renew(found, now);
        warnings
    }

    /// Takes the warnings of the configuration that comes into force now. Logs those that did not hold before.
    pub(super) fn renew(&mut self, found: Vec<Diagnostic>, now: Timestamp) {
        let mut before = std::mem::take(&mut self.known);
        self.known = found.into_iter().map(|warning| (warning, now)).collect();
        let mut is_new = vec![true; self.known.len()];
        // Of two in the same words, one that stands where it stood is the one of before.
        for is_same in [is_same as fn(&Diagnostic, &Diagnostic) -> bool, says_the_same] {
            for ((warning, since), is_new) in self.known.iter_mut().zip(&mut is_new).filter(|(_, is_new)| **is_new) {
                if let Some(place) = before.iter().position(|(known, _)| is_same(known, warning)) {
                    *since = before.swap_remove(place).1;
                    *is_new = false;
                }
            }
        }
        let new = self.known.iter().zip(is_new).filter(|(_, is_new)| *is_new);
        log_warnings(new.map(|((warning, _), _)| warning));
    }

    /// As operators are told.
    pub(super) fn advice(&self) -> Vec<Advice> {
        self.known.iter().map(|(warning, since)| advice(warning, *since)).collect()
    }
}

fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (one.line, one.column) == (other.line, other.column) && says_the_same(one, other)
}

/// Lines that come or go before it do not change a warning.
fn says_the_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    let is_alike = |one: &str, other: &str| without_lines(one).eq(without_lines(other));
    let [help, others_help] = [one, other].map(|warning| warning.help.as_deref().unwrap_or_default());
    one.file == other.file && is_alike(&one.message, &other.message) && is_alike(help, others_help)
}

/// The parts of a text without the numbers of the lines that it names.
fn without_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split("line ").map(|part| part.trim_start_matches(|first: char| first.is_ascii_digit()))
}

fn advice(Diagnostic { file, line, column, message, help, .. }: &Diagnostic, since: Timestamp) -> Advice {
    Advice {
        kind: AdviceKind::Check,
        message: format!("{}:{line}:{column}: {message}", file.display()),
        since,
        limit: None,
        route: None,
        help: help.clone().unwrap_or_default(),
    }
}
