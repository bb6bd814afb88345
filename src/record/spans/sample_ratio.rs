//! Which share of the requests is traced.

use std::str::FromStr;

/// From 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRatio(f64);

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a share from 0 to 1")]
pub struct InvalidSampleRatio(String);

impl SampleRatio {
    pub const ALL: Self = Self(1.0);

    /// `random`: evenly distributed, from 0 to below 1.
    pub(super) fn takes(self, random: f64) -> bool {
        random < self.0
    }
}

impl FromStr for SampleRatio {
    type Err = InvalidSampleRatio;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSampleRatio(text.to_owned());
        // Rust also reads `inf`, `1e-3` and `+1`, which nobody writes here.
        if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(invalid());
        }
        let ratio: f64 = text.parse().map_err(|_| invalid())?;
        if (0.0..=1.0).contains(&ratio) { Ok(Self(ratio)) } else { Err(invalid()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_share() {
        for (text, expected) in
            [("0", Some(0.0)), ("1", Some(1.0)), ("1.0", Some(1.0)), ("0.01", Some(0.01)), (".5", Some(0.5))]
        {
            assert_eq!(text.parse().ok(), expected.map(SampleRatio), "{text}");
        }
        for wrong in ["", "-1", "1.01", "5%", "NaN", "inf", "1e-3", "all", "0.0.1"] {
            assert!(wrong.parse::<SampleRatio>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn none_takes_nothing_and_all_takes_everything() {
        assert!(!SampleRatio(0.0).takes(0.0) && SampleRatio::ALL.takes(0.999_999));
        assert!(SampleRatio(0.25).takes(0.2) && !SampleRatio(0.25).takes(0.25));
    }
}
