//! The tree of a domain.

use std::fmt;

use crate::config::mistakes::Mistakes;
use crate::config::source::SourceRange;
use crate::limit::Rate;

/// A domain and its tree.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) name: String,
    pub(super) at: SourceRange,
    pub(super) branches: Vec<Branch>,
}

/// An entry that a descriptor may have at one level.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) at: SourceRange,
    pub(super) key: String,
    pub(super) value: EntryValue,
    pub(super) limit: Option<TreeLimit>,
    pub(super) shadow: bool,
    /// All values that a wildcard matches are counted together.
    pub(super) shares: bool,
    pub(super) branches: Vec<Branch>,
}

/// Which values of an entry take a branch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum EntryValue {
    Any,
    Exactly(String),
    /// All that begin so.
    Beginning(String),
}

impl fmt::Display for EntryValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exactly(text) => f.write_str(text),
            Self::Beginning(text) => write!(f, "{text}*"),
        }
    }
}

/// The limit at the end of a branch.
#[derive(Debug)]
pub(super) struct TreeLimit {
    pub(super) at: SourceRange,
    pub(super) name: Option<String>,
    pub(super) replaces: Vec<String>,
    pub(super) quota: Quota,
}

/// How much passes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Quota {
    Unlimited,
    /// `requests_per_unit: 0`
    Nothing,
    Rate(Rate),
}

impl Domain {
    /// Adds the branches of another file.
    pub(super) fn merge(&mut self, other: Self, mistakes: &mut Mistakes) {
        mistakes.warn(
            other.at,
            format!("the domain `{}` is there several times: their limits are one route", self.name),
            "the service refuses that, unless MERGE_DOMAIN_CONFIG is set; rename one of the two if they are not one",
        );
        self.branches.extend(other.branches);
        refuse_repeated(&self.branches, mistakes);
    }
}

/// Reports two branches of one level that the same entry would take.
pub(super) fn refuse_repeated(branches: &[Branch], mistakes: &mut Mistakes) {
    for (position, branch) in branches.iter().enumerate() {
        let same = |earlier: &&Branch| earlier.key == branch.key && earlier.value == branch.value;
        if let Some(earlier) = branches[..position].iter().find(same) {
            let message = format!("this entry is here twice: `{}` with the same value", branch.key);
            let help = format!("the other one is at line {}: write both as one", earlier.at.line);
            mistakes.report(branch.at, message, help);
        }
    }
}
