//! The `Date` field. It is formatted once a second and copied in between.

use std::cell::RefCell;

use http::HeaderValue;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::clock;

/// Writes the current date.
pub(super) fn write(out: &mut Vec<u8>) {
    with_current(|date| out.extend_from_slice(date.as_bytes()));
}

/// The current date.
pub(super) fn value() -> HeaderValue {
    with_current(HeaderValue::clone)
}

fn with_current<T>(copy: impl FnOnce(&HeaderValue) -> T) -> T {
    let second = clock::wall().as_micros() / 1_000_000;
    FORMATTED.with_borrow_mut(|written| {
        let (_, date) = match written {
            Some(written) if written.0 == second => written,
            // A date is always a valid field value.
            other => other.insert((second, format(second).try_into().unwrap_or(HeaderValue::from_static("")))),
        };
        copy(date)
    })
}

thread_local! {
    /// The second, and its date.
    static FORMATTED: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// Formats a date as RFC 9110 (section 5.6.7) demands.
fn format(second: u64) -> String {
    let moment = i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok());
    // A clock beyond the calendar has no date: the epoch stands in for it.
    let moment = moment.unwrap_or(Timestamp::UNIX_EPOCH);
    DateTimePrinter::new().timestamp_to_rfc9110_string(&moment).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_the_one_of_rfc_9110() {
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(format(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format(u64::MAX), format(0));
    }
}
