//! Times and spans of a line.

use std::cell::Cell;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::digits::push_decimal;
use crate::digits::three_digits;

/// Milliseconds with three decimals, as a number.
pub(in crate::record) fn millis(line: &mut Vec<u8>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    push_decimal(line, micros / 1000);
    let [hundreds, tens, ones] = three_digits(micros);
    line.extend_from_slice(&[b'.', hundreds, tens, ones]);
}

/// RFC 3339 in UTC, to the millisecond. The part down to the second is formatted once a second.
pub(in crate::record) fn time(line: &mut Vec<u8>, at: Timestamp) {
    thread_local! {
        static SECOND: Cell<(u64, [u8; TO_THE_SECOND])> = const { Cell::new((u64::MAX, [0; TO_THE_SECOND])) };
    }
    let millis = at.as_micros() / 1000;
    let (mut second, mut text) = SECOND.get();
    if second != millis / 1000 {
        second = millis / 1000;
        let whole = Timestamp::from_micros(second * 1_000_000).to_string();
        text = *whole.as_bytes().first_chunk().expect("it has a fraction, or more digits than any date");
        SECOND.set((second, text));
    }
    line.extend_from_slice(&text);
    let [hundreds, tens, ones] = three_digits(millis);
    line.extend_from_slice(&[b'.', hundreds, tens, ones, b'Z']);
}

/// Nanoseconds since 1970 as text, as OpenTelemetry writes them: JSON numbers need not hold 64 bits.
pub(in crate::record) fn nanos(line: &mut Vec<u8>, at: Timestamp) {
    line.push(b'"');
    push_decimal(line, at.as_micros());
    line.extend_from_slice(b"000\"");
}

/// The length of `2026-11-21T07:58:52`.
const TO_THE_SECOND: usize = 19;
