//! A set of exact values, such as partner keys.

use std::collections::HashSet;

/// Values in the spelling in which they are compared: they are normalised when the list is read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ValueSet(HashSet<Box<str>>);

impl ValueSet {
    pub fn contains(&self, value: &str) -> bool {
        self.0.contains(value)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<S: Into<Box<str>>> FromIterator<S> for ValueSet {
    fn from_iter<I: IntoIterator<Item = S>>(values: I) -> Self {
        Self(values.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_exactly() {
        let set: ValueSet = ["key-1", "Key-2"].into_iter().collect();
        assert!(set.contains("key-1"));
        assert!(!set.contains("KEY-1"));
        assert!(!set.contains("key-"));
        assert!(!set.contains(""));
    }
}
