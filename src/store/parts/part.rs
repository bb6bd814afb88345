//! A part of every limit.

use std::num::NonZeroU32;

/// A part of every limit, from nothing to the whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Part {
    units: u64,
    of: u64,
}

impl Part {
    /// One of `nodes` equal parts.
    pub fn one_of(nodes: NonZeroU32) -> Self {
        Self { units: 1, of: u64::from(nodes.get()) }
    }

    /// So many of [`WHOLE`] units.
    pub fn of_units(units: u64) -> Self {
        Self { units, of: WHOLE }
    }

    /// What this part is of a count, rounded down. All parts together are never more than the count. `None`: nothing.
    pub fn of(self, count: NonZeroU32) -> Option<NonZeroU32> {
        let of_count = u128::from(count.get()) * u128::from(self.units) / u128::from(self.of);
        NonZeroU32::new(u32::try_from(of_count).unwrap_or(count.get()))
    }

    pub fn is_whole(self) -> bool {
        self.units == self.of
    }

    pub fn is_none(self) -> bool {
        self.units == 0
    }

    /// From 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "both are below 2^53")]
    pub fn as_fraction(self) -> f64 {
        self.units as f64 / self.of as f64
    }
}

/// How many units the parts of all gateways may have together. It can be divided by every number up to 36, by 2^8, and by the
/// products of these that are below a few hundred, so that equal parts of it lose nothing. It is below 2^53, up to which the
/// numbers of Lua are exact.
pub const WHOLE: u64 = 1_155_228_423_148_800;

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("above zero")
    }

    #[test]
    fn equal_parts_are_exact_and_all_of_them_are_never_more_than_the_whole() {
        for gateways in 1..=100 {
            let part = Part::of_units(WHOLE / u64::from(gateways));
            let fixed = Part::one_of(number(gateways));
            for count in (1..=200).chain([gateways * 7, u32::MAX]) {
                let of_count = part.of(number(count)).map_or(0, NonZeroU32::get);
                let exact = count / gateways;
                assert!(of_count == exact || gateways > 36 && of_count + 1 == exact, "{count} of {gateways}");
                assert_eq!(fixed.of(number(count)).map_or(0, NonZeroU32::get), exact);
            }
        }
    }

    #[test]
    fn nothing_and_the_whole() {
        assert_eq!(Part::of_units(0).of(number(u32::MAX)), None);
        assert_eq!(Part::of_units(WHOLE).of(number(u32::MAX)), Some(number(u32::MAX)));
        assert!(Part::of_units(WHOLE).is_whole() && Part::one_of(number(1)).is_whole());
        assert!(Part::of_units(0).is_none() && !Part::of_units(1).is_none());
        assert_eq!(Part::of_units(WHOLE / 4).as_fraction().to_bits(), 0.25_f64.to_bits());
    }
}
