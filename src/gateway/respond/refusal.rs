//! The reason that a client gets for a denial or an error, before it is written as a page, a problem document or a gRPC
//! status.

use std::time::Duration;

use crate::units::whole_seconds;

/// A denial or an error, with the details that the client may know.
#[derive(Clone, Copy, Debug)]
pub enum Refusal<'a> {
    /// `wait` is `None` when it would say too much, or when waiting does not help.
    Limited {
        limits: &'a [&'a str],
        wait: Option<Duration>,
    },
    Forbidden,
    /// Access is denied until the client has met a challenge.
    Challenged,
    TooManyValues,
    /// The store is down, and a limit denies during the outage.
    Unavailable,
    /// The request was malformed, or the application failed. `words` begin in lower case and have no dot.
    Failed {
        words: &'a str,
    },
}

impl Refusal<'_> {
    /// Writes one or two sentences of plain ASCII without quotes, for every format.
    pub fn explain(&self, text: &mut Vec<u8>) {
        match self {
            Self::Limited { wait: Some(wait), .. } => {
                text.extend_from_slice(b"Too many requests. Try again in ");
                write_wait(text, *wait);
                text.push(b'.');
            }
            Self::Limited { wait: None, .. } => text.extend_from_slice(b"Too many requests. Try again later."),
            Self::Forbidden | Self::Challenged => text.extend_from_slice(b"Access is denied."),
            Self::TooManyValues => text.extend_from_slice(b"A field was sent too many times."),
            Self::Unavailable => {
                text.extend_from_slice(b"The service is temporarily unavailable. Try again in a moment.");
            }
            Self::Failed { words } => {
                let start = text.len();
                text.extend_from_slice(words.as_bytes());
                text[start..].iter_mut().take(1).for_each(u8::make_ascii_uppercase);
                text.push(b'.');
            }
        }
    }
}

/// `42 seconds`, `3 minutes`, `2 hours`: rounded up, in a larger unit for a longer wait.
fn write_wait(text: &mut Vec<u8>, wait: Duration) {
    let seconds = whole_seconds(wait).max(1);
    let (count, unit) = match seconds {
        0..=120 => (seconds, "second"),
        121..=7200 => (seconds.div_ceil(60), "minute"),
        7201..=172_800 => (seconds.div_ceil(3600), "hour"),
        _ => (seconds.div_ceil(86_400), "day"),
    };
    text.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    text.push(b' ');
    text.extend_from_slice(unit.as_bytes());
    if count != 1 {
        text.push(b's');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(millis: u64, expected: &str) {
        let mut text = Vec::new();
        write_wait(&mut text, Duration::from_millis(millis));
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }

    #[test]
    fn a_wait_is_written_in_the_unit_that_fits() {
        check(0, "1 second");
        check(1, "1 second");
        check(41_001, "42 seconds");
        check(120_000, "120 seconds");
        check(120_001, "3 minutes");
        check(7_200_001, "3 hours");
        check(200_000_000, "3 days");
    }
}
