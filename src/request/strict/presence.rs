//! How often a field stands in a text.

/// How often a field stands in a text that is understood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Presence {
    Absent,
    /// Once, under exactly its name, as a text: every application reads the same value.
    Once,
    /// Several times, in another case, or as something else than a text.
    Otherwise,
}
