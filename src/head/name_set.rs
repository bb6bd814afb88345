//! Sets of known names.

use super::KnownName;

/// A set of known names: a bit for each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NameSet(pub(super) u128);

impl NameSet {
    pub const fn of(names: &[KnownName]) -> Self {
        let mut bits = 0;
        let mut position = 0;
        while position < names.len() {
            bits |= names[position].bit();
            position += 1;
        }
        Self(bits)
    }

    pub const fn has(self, name: KnownName) -> bool {
        self.0 & name.bit() != 0
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = KnownName> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let name = KnownName::of_bit(rest)?;
            rest &= !name.bit();
            Some(name)
        })
    }

    #[must_use]
    pub const fn without(self, name: KnownName) -> Self {
        Self(self.0 & !name.bit())
    }
}
