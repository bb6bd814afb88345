//! Makes of each limit in a tree a rule that stands alone: it says itself which values belong to other branches.

use std::collections::HashSet;
use std::fmt;

use crate::config::diagnostic::Mistakes;
use crate::config::source::SourceRange;
use crate::rules::limit::Rate;

/// The most that a rate can say: it never denies.
const WIDEST: Rate = Rate { count: std::num::NonZeroU32::MAX, per: std::time::Duration::from_secs(1) };

/// Names have 128 characters at most, the number included.
const LONGEST_NAME: usize = 120;

/// The rules of a domain, in the order of the file.
#[derive(Debug)]
pub(super) struct DomainRules {
    pub(super) domain: String,
    pub(super) rules: Vec<Rule>,
}

/// A limit, and the descriptors that meet it.
#[derive(Debug)]
pub(super) struct Rule {
    /// Unique in all domains.
    pub(super) name: String,
    /// The line of its file.
    pub(super) line: u32,
    pub(super) path: Vec<Step>,
    pub(super) shadow: bool,
    /// The names of the rules that it replaces.
    pub(super) replaces: Vec<String>,
    /// `None`: what meets the rule is denied.
    pub(super) rate: Option<Rate>,
}

/// An entry that a descriptor must have.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) key: String,
    pub(super) value: EntryValue,
    /// The values that other branches take.
    pub(super) except: Vec<EntryValue>,
    /// Whether each value is counted by itself.
    pub(super) counts_apart: bool,
}

/// A limit of a tree with its path.
struct Leaf<'t> {
    path: Vec<Step>,
    limit: &'t TreeLimit,
    shadow: bool,
}

/// The rules of a domain. Warns of what they decide differently.
pub(super) fn rules(domain: &Domain, names: &mut Names, mistakes: &mut Mistakes) -> DomainRules {
    let mut leaves = Vec::new();
    collect(&domain.branches, &[], &mut leaves);
    leaves.retain(|leaf| is_expressible(leaf, mistakes));
    warn_of_order(&leaves, mistakes);
    let titled: Vec<(String, Leaf<'_>)> =
        leaves.into_iter().map(|leaf| (names.name(&domain.name, &leaf), leaf)).collect();
    let mut rules = Vec::new();
    for (name, leaf) in &titled {
        if let Some(rate) = rate(leaf, mistakes) {
            let (path, replaces) = (leaf.path.clone(), replaced(leaf, &titled, mistakes));
            let line = leaf.limit.at.line;
            rules.push(Rule { name: name.clone(), line, path, shadow: leaf.shadow, replaces, rate });
        }
    }
    DomainRules { domain: domain.name.clone(), rules }
}

fn collect<'t>(branches: &'t [Branch], path: &[Step], leaves: &mut Vec<Leaf<'t>>) {
    for (position, branch) in branches.iter().enumerate() {
        let step = Step {
            key: branch.key.clone(),
            value: branch.value.clone(),
            except: taken_by_others(branches, position),
            counts_apart: match branch.value {
                EntryValue::Any => true,
                EntryValue::Beginning(_) => !branch.shares,
                EntryValue::Exactly(_) => false,
            },
        };
        let path = [path, &[step]].concat();
        if let Some(limit) = &branch.limit {
            leaves.push(Leaf { path: path.clone(), limit, shadow: branch.shadow });
        }
        collect(&branch.branches, &path, leaves);
    }
}

/// The values of an entry that take a more specific branch beside this one: an exact value before a beginning, the first
/// beginning before later ones, and any value last.
fn taken_by_others(branches: &[Branch], position: usize) -> Vec<EntryValue> {
    let branch = &branches[position];
    let others = branches.iter().enumerate().filter(|(_, other)| other.key == branch.key);
    let taken = others.filter(|(place, other)| match (&branch.value, &other.value) {
        (EntryValue::Any, value) => *value != EntryValue::Any,
        (EntryValue::Beginning(own), EntryValue::Exactly(value)) => value.starts_with(own),
        (EntryValue::Beginning(own), EntryValue::Beginning(earlier)) => {
            *place < position && (own.starts_with(earlier) || earlier.starts_with(own))
        }
        _ => false,
    });
    taken.map(|(_, other)| other.value.clone()).collect()
}

/// Warns where a limit cannot be written.
fn is_expressible(leaf: &Leaf<'_>, mistakes: &mut Mistakes) -> bool {
    let at = leaf.limit.at;
    let mut keys = HashSet::new();
    let repeated = leaf.path.iter().find(|step| !keys.insert(&step.key));
    if let Some(step) = repeated {
        mistakes.warn(
            at,
            format!(
                "NOT LIMITED: the entry `{}` stands twice on this path, and entries are told apart by name",
                step.key
            ),
            "let Envoy send the two under different names (`descriptor_key`), and write the limit for them",
        );
        return false;
    }
    let odd = leaf.path.iter().find(|step| step.key.contains(['*', '?']) || step.key.trim() != step.key);
    if let Some(step) = odd {
        let help = "let Envoy send it under another name (`descriptor_key`), and write the limit for that";
        mistakes.warn(at, format!("NOT LIMITED: `{}` cannot be the name of an entry here", step.key), help);
        return false;
    }
    true
}

/// Warns of two paths with the same entries in another order.
fn warn_of_order(leaves: &[Leaf<'_>], mistakes: &mut Mistakes) {
    let sorted = |leaf: &Leaf<'_>| {
        let mut keys: Vec<String> = leaf.path.iter().map(|step| step.key.clone()).collect();
        keys.sort();
        keys
    };
    for (position, leaf) in leaves.iter().enumerate() {
        let order = |leaf: &Leaf<'_>| leaf.path.iter().map(|step| step.key.clone()).collect::<Vec<_>>();
        let other =
            leaves[..position].iter().find(|other| sorted(other) == sorted(leaf) && order(other) != order(leaf));
        if let Some(other) = other {
            mistakes.warn(
                leaf.limit.at,
                format!("the limit at line {} has the same entries in another order: a descriptor in either order meets both", other.limit.at.line),
                "let Envoy send the two under different names (`descriptor_key`)",
            );
        }
    }
}

/// How much passes; `Some(None)`: nothing. `None`: the limit limits nothing.
#[expect(clippy::option_option, reason = "a limit that denies everything is not the one that limits nothing")]
fn rate(leaf: &Leaf<'_>, mistakes: &mut Mistakes) -> Option<Option<Rate>> {
    match leaf.limit.quota {
        Quota::Rate(rate) => Some(Some(rate)),
        // It must be there to replace others.
        Quota::Unlimited if !leaf.limit.replaces.is_empty() => Some(Some(WIDEST)),
        Quota::Unlimited => None,
        Quota::Nothing if leaf.shadow => {
            let help = "add the descriptors to `deny` of the route once they shall be denied";
            mistakes.warn(
                leaf.limit.at,
                "a limit of 0 in shadow mode is left out: nothing counts what is not denied",
                help,
            );
            None
        }
        Quota::Nothing => {
            if leaf.limit.name.is_some() || !leaf.limit.replaces.is_empty() {
                let message = "a limit of 0 neither replaces others nor is replaced: what meets it is denied";
                mistakes.warn(
                    leaf.limit.at,
                    message,
                    "remove it from `deny` of the route where another limit shall hold",
                );
            }
            Some(None)
        }
    }
}

/// The names of the rules that a limit replaces: all that were called so.
fn replaced(leaf: &Leaf<'_>, leaves: &[(String, Leaf<'_>)], mistakes: &mut Mistakes) -> Vec<String> {
    let mut replaced = Vec::new();
    for wanted in &leaf.limit.replaces {
        let is_so_called = |(_, other): &&(String, Leaf<'_>)| {
            other.limit.name.as_ref() == Some(wanted) && matches!(other.limit.quota, Quota::Rate(_))
        };
        let before = replaced.len();
        replaced.extend(leaves.iter().filter(is_so_called).map(|(name, _)| name.clone()));
        if replaced.len() == before {
            let message = format!("no limit of this domain that counts is called `{wanted}`");
            mistakes.warn(leaf.limit.at, message, "the entry of `replaces` is left out");
        }
    }
    replaced
}

/// The names given so far, in all domains.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// `messaging.message_type_marketing.to_number`, as the service calls it in its statistics.
    fn name(&mut self, domain: &str, leaf: &Leaf<'_>) -> String {
        let mut title = plain(domain);
        for step in &leaf.path {
            title.push('.');
            title += &plain(&step.key);
            if let EntryValue::Exactly(value) | EntryValue::Beginning(value) = &step.value {
                title.push('_');
                title += &plain(value);
            }
        }
        title.truncate(LONGEST_NAME);
        let mut name = title.clone();
        for attempt in 2.. {
            if self.0.insert(name.clone()) {
                break;
            }
            name = format!("{title}-{attempt}");
        }
        name
    }
}

/// With letters, digits and few signs alone.
fn plain(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':' | '/');
    text.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect()
}

impl Rule {
    /// Whether it denies every descriptor that meets it, without counting.
    pub(super) fn is_denial(&self) -> bool {
        self.rate.is_none()
    }
}

// The tree of a domain.

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
