//! Which descriptors a limit of a domain meets.

use std::fmt;
use std::sync::Arc;

use crate::glob::Glob;
use crate::key::Descriptor;
use crate::key::DescriptorEntry;
use crate::key::KeySpec;
use crate::key::Selector;

/// What a descriptor must be like to meet a limit, beside having every entry of its key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DescriptorFilter {
    /// It has an entry of each name, with a value that matches.
    pub values: Vec<(Box<str>, Glob)>,
    /// No entry of these names has a value that matches one of the patterns.
    pub except: Vec<(Box<str>, Vec<Glob>)>,
    pub entries: EntrySet,
    /// The limits of these names do not apply to a call in which this limit is met.
    pub replaces: Vec<Arc<str>>,
}

/// Whether a descriptor may have entries that the limit does not name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EntrySet {
    #[default]
    AtLeast,
    /// It has the entries of the key and of `values`, each once, and no others.
    Exact,
}

/// Why a descriptor does not meet a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DescriptorMismatch<'f> {
    Lacks(&'f str),
    Value(&'f str, &'f Glob),
    Excepted(&'f str, &'f Glob),
    /// It has an entry that the limit does not name.
    Further(&'f str),
    Repeated(&'f str),
}

impl DescriptorFilter {
    /// Whether a descriptor meets a limit with this filter and this key.
    pub fn meets(&self, key: &KeySpec, descriptor: &Descriptor) -> bool {
        self.mismatch(key, descriptor).is_none()
    }

    /// Why a descriptor does not meet a limit with this filter and this key; `None`: it does.
    pub fn mismatch<'f>(&'f self, key: &'f KeySpec, descriptor: &'f Descriptor) -> Option<DescriptorMismatch<'f>> {
        let lacked = names(key).find(|name| descriptor.values(name).next().is_none());
        if let Some(name) = lacked {
            return Some(DescriptorMismatch::Lacks(name));
        }
        for (name, glob) in &self.values {
            if !descriptor.values(name).any(|value| glob.matches(value)) {
                let has = descriptor.values(name).next().is_some();
                return Some(if has { DescriptorMismatch::Value(name, glob) } else { DescriptorMismatch::Lacks(name) });
            }
        }
        for (name, globs) in &self.except {
            for value in descriptor.values(name) {
                if let Some(glob) = globs.iter().find(|glob| glob.matches(value)) {
                    return Some(DescriptorMismatch::Excepted(name, glob));
                }
            }
        }
        match self.entries {
            EntrySet::AtLeast => None,
            EntrySet::Exact => self.surplus(key, descriptor),
        }
    }

    /// The first entry that is not named, or that has the name of another.
    fn surplus<'f>(&self, key: &KeySpec, descriptor: &'f Descriptor) -> Option<DescriptorMismatch<'f>> {
        let is_named =
            |name: &str| names(key).chain(self.values.iter().map(|(known, _)| &**known)).any(|known| known == name);
        descriptor.entries.iter().find_map(|DescriptorEntry { name, .. }| match () {
            () if !is_named(name) => Some(DescriptorMismatch::Further(name)),
            () if descriptor.values(name).count() > 1 => Some(DescriptorMismatch::Repeated(name)),
            () => None,
        })
    }
}

/// The entries that a key names.
fn names(key: &KeySpec) -> impl Iterator<Item = &str> {
    key.parts.iter().filter_map(|part| match &part.selector {
        Selector::Descriptor(name) => Some(&**name),
        _ => None,
    })
}

impl fmt::Display for DescriptorMismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacks(name) => write!(f, "there is no entry {name:?}"),
            Self::Value(name, glob) => write!(f, "the entry {name:?} is not {glob}"),
            Self::Excepted(name, glob) => write!(f, "the entry {name:?} is {glob}, which `except` frees"),
            Self::Further(name) => write!(f, "there is another entry, {name:?}, and `entries: exact` allows none"),
            Self::Repeated(name) => write!(f, "the entry {name:?} is there twice, and `entries: exact` allows one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyPart;
    use crate::key::Spelling;

    fn key(names: &[&str]) -> KeySpec {
        let part = |name: &&str| KeyPart { selector: Selector::Descriptor((*name).into()), spelling: Spelling::Usual };
        KeySpec { parts: names.iter().map(part).collect(), ..KeySpec::default() }
    }

    fn descriptor(entries: &[(&str, &str)]) -> Descriptor {
        let entry = |(name, value): &(&str, &str)| DescriptorEntry { name: (*name).into(), value: (*value).into() };
        Descriptor { entries: entries.iter().map(entry).collect() }
    }

    #[track_caller]
    fn check(filter: &DescriptorFilter, entries: &[(&str, &str)], expected: bool) {
        assert_eq!(filter.meets(&key(&["user"]), &descriptor(entries)), expected, "{entries:?}");
    }

    #[test]
    fn a_descriptor_may_have_more_entries_than_the_key() {
        let filter = DescriptorFilter::default();
        check(&filter, &[("user", "a")], true);
        check(&filter, &[("user", "")], true);
        check(&filter, &[("path", "/"), ("user", "a")], true);
        check(&filter, &[("path", "/")], false);
        check(&filter, &[], false);
        assert!(filter.meets(&key(&[]), &descriptor(&[])), "a key without parts is in every descriptor");
    }

    #[test]
    fn values_must_match_with_their_case() {
        let filter = DescriptorFilter { values: vec![("tier".into(), Glob::of_entry("gold*"))], ..Default::default() };
        check(&filter, &[("user", "a"), ("tier", "gold-2")], true);
        check(&filter, &[("user", "a"), ("tier", "Gold")], false);
        check(&filter, &[("user", "a")], false);
        check(&filter, &[("user", "a"), ("tier", "lead"), ("tier", "gold")], true);
    }

    #[test]
    fn an_excepted_value_frees_a_descriptor() {
        let except = vec![("user".into(), vec![Glob::of_entry("root"), Glob::of_entry("ops-*")])];
        let filter = DescriptorFilter { except, ..Default::default() };
        check(&filter, &[("user", "a")], true);
        check(&filter, &[("user", "root")], false);
        check(&filter, &[("user", "ops-7")], false);
        check(&filter, &[("user", "Root")], true);
    }

    #[test]
    fn exact_entries_allow_no_others_and_none_twice() {
        let values = vec![("tier".into(), Glob::of_entry("gold"))];
        let filter = DescriptorFilter { values, entries: EntrySet::Exact, ..Default::default() };
        check(&filter, &[("user", "a"), ("tier", "gold")], true);
        check(&filter, &[("tier", "gold"), ("user", "a")], true);
        check(&filter, &[("user", "a"), ("tier", "gold"), ("path", "/")], false);
        check(&filter, &[("user", "a"), ("user", "b"), ("tier", "gold")], false);
    }
}
