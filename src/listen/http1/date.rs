//! `Date`, which is written every second and copied in between.

use std::cell::RefCell;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::clock;

/// Writes what time it is.
pub(super) fn write(out: &mut Vec<u8>) {
    let second = clock::wall().as_micros() / 1_000_000;
    WRITTEN.with_borrow_mut(|written| {
        if written.second != second || written.text.is_empty() {
            *written = Written { second, text: text(second) };
        }
        out.extend_from_slice(written.text.as_bytes());
    });
}

#[derive(Debug, Default)]
struct Written {
    second: u64,
    text: String,
}

thread_local! {
    static WRITTEN: RefCell<Written> = RefCell::default();
}

/// As RFC 9110 (section 5.6.7) has it.
fn text(second: u64) -> String {
    let moment = i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok());
    // A clock beyond all calendars tells nothing; the epoch is a date too.
    let moment = moment.unwrap_or(Timestamp::UNIX_EPOCH);
    DateTimePrinter::new().timestamp_to_rfc9110_string(&moment).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_the_one_of_rfc_9110() {
        assert_eq!(text(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text(u64::MAX), text(0));
    }
}
