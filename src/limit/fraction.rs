//! Fractions of whole numbers, rounded once: multiplied first, then divided.

/// `amount * part / whole`, rounded down. `whole` is above zero; a result that does not fit is `u64::MAX`.
pub(super) fn scaled_down(amount: u64, part: u64, whole: u64) -> u64 {
    match amount.checked_mul(part) {
        Some(product) => product / whole,
        None => fitting(u128::from(amount) * u128::from(part) / u128::from(whole)),
    }
}

/// `amount * part / whole`, rounded up. `whole` is above zero; a result that does not fit is `u64::MAX`.
pub(super) fn scaled_up(amount: u64, part: u64, whole: u64) -> u64 {
    divided_up(u128::from(amount) * u128::from(part), whole)
}

/// `amount / whole`, rounded up. `whole` is above zero; a result that does not fit is `u64::MAX`.
pub(super) fn divided_up(amount: u128, whole: u64) -> u64 {
    match u64::try_from(amount) {
        Ok(amount) => amount.div_ceil(whole),
        Err(_) => fitting(amount.div_ceil(u128::from(whole))),
    }
}

/// `amount / whole`, rounded down. `whole` is above zero; a result that does not fit is `u64::MAX`.
pub(super) fn divided_down(amount: u128, whole: u64) -> u64 {
    match u64::try_from(amount) {
        Ok(amount) => amount / whole,
        Err(_) => fitting(amount / u128::from(whole)),
    }
}

fn fitting(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::any;
    use proptest::proptest;

    use super::*;

    proptest! {
        #[test]
        fn nothing_is_lost_to_rounding_or_overflow(amount in any::<u64>(), part in any::<u64>(), whole in 1..u64::MAX) {
            let product = u128::from(amount) * u128::from(part);
            let exact = |quotient: u128| u64::try_from(quotient).unwrap_or(u64::MAX);
            assert_eq!(scaled_down(amount, part, whole), exact(product / u128::from(whole)));
            assert_eq!(scaled_up(amount, part, whole), exact(product.div_ceil(u128::from(whole))));
            assert_eq!(divided_down(product, whole), exact(product / u128::from(whole)));
            assert_eq!(divided_up(product, whole), exact(product.div_ceil(u128::from(whole))));
        }
    }
}
