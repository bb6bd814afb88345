//! A set of exact values, such as partner keys.

/// Values as they are compared: the reader of the list has normalised what its selector normalises.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ValueSet {}

impl ValueSet {
    pub fn contains(&self, _value: &str) -> bool {
        todo!()
    }
}
