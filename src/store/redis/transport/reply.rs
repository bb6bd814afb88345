//! Reads replies of Redis: those of our scripts here, all others with the library.

use std::io;

use redis::Value;

/// The first reply in these bytes and its length; `None`: it is not complete yet.
pub(in crate::store::redis) fn first(bytes: &[u8]) -> io::Result<Option<(Value, usize)>> {
    if let Some(numbers) = numbers(bytes) {
        return Ok(Some(numbers));
    }
    let Some(end) = end(bytes, 0, 0)? else { return Ok(None) };
    let value = redis::parse_redis_value(&bytes[..end]).map_err(|_| nonsense())?;
    Ok(Some((value, end)))
}

/// A complete reply that is a list of numbers.
fn numbers(bytes: &[u8]) -> Option<(Value, usize)> {
    let (count, mut at) = number(bytes, 0, b'*')?;
    let count = usize::try_from(count).ok().filter(|count| *count <= bytes.len())?;
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let (value, next) = number(bytes, at, b':')?;
        values.push(Value::Int(value));
        at = next;
    }
    Some((Value::Array(values), at))
}

/// The number of a line that begins with `mark`, and where the line ends. `None` also for numbers that are longer than those of
/// our scripts.
fn number(bytes: &[u8], start: usize, mark: u8) -> Option<(i64, usize)> {
    let line = bytes.get(start..)?.strip_prefix(&[mark])?;
    let (is_negative, digits) = match line.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, line),
    };
    let mut value = 0;
    for (place, byte) in digits.iter().take(MOST_DIGITS + 1).enumerate() {
        match byte {
            b'0'..=b'9' if place < MOST_DIGITS => value = value * 10 + i64::from(byte - b'0'),
            b'\r' if place > 0 && digits.get(place + 1) == Some(&b'\n') => {
                let value = if is_negative { -value } else { value };
                return Some((value, start + 1 + usize::from(is_negative) + place + 2));
            }
            _ => return None,
        }
    }
    None
}

/// So many always fit.
const MOST_DIGITS: usize = 18;

/// Where the reply ends that begins at `start`.
fn end(bytes: &[u8], start: usize, depth: usize) -> io::Result<Option<usize>> {
    let Some(mark) = bytes.get(start) else { return Ok(None) };
    let Some(length) = memchr::memmem::find(&bytes[start..], b"\r\n") else { return Ok(None) };
    let after = start + length + 2;
    let count = || -> io::Result<Option<usize>> {
        let (count, _) = number(bytes, start, *mark).ok_or_else(nonsense)?;
        // A negative count means null.
        Ok(usize::try_from(count).ok())
    };
    match mark {
        b'+' | b'-' | b':' => Ok(Some(after)),
        b'$' => match count()? {
            None => Ok(Some(after)),
            Some(length) => {
                let end = after.checked_add(length).and_then(|end| end.checked_add(2)).ok_or_else(nonsense)?;
                Ok((end <= bytes.len()).then_some(end))
            }
        },
        b'*' if depth < DEEPEST => {
            let mut at = after;
            for _ in 0..count()?.unwrap_or(0) {
                match end(bytes, at, depth + 1)? {
                    Some(next) => at = next,
                    None => return Ok(None),
                }
            }
            Ok(Some(at))
        }
        _ => Err(nonsense()),
    }
}

fn nonsense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the server does not speak the protocol of Redis")
}

/// Redis itself nests lists at most three deep.
const DEEPEST: usize = 8;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use super::first;
    #[cfg(test)]
    use crate::words::corpus;

    /// A reply is found once it is whole and never before, and does not depend on what follows it.
    pub fn check(bytes: &[u8]) {
        let mut rest = bytes;
        while let Ok(Some((value, length))) = first(rest) {
            assert!(0 < length && length <= rest.len(), "{length} of {}", rest.len());
            let again = first(&rest[..length]);
            assert_eq!(again.expect("it was a reply"), Some((value, length)), "it depends on what follows it");
            let shorter = first(&rest[..length - 1]);
            assert!(!matches!(shorter, Ok(Some(_))), "it was whole before its end");
            rest = &rest[length..];
        }
    }

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("redis_reply", check);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REPLIES: [&[u8]; 11] = [
        b"*3\r\n:1795263354526556\r\n:-1\r\n:0\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"$-1\r\n",
        b"$0\r\n\r\n",
        b"$5\r\na\r\nbc\r\n",
        b"+OK\r\n",
        b":42\r\n",
        b"-NOSCRIPT No matching script.\r\n",
        b"*2\r\n*3\r\n:0\r\n:5460\r\n*2\r\n$9\r\n127.0.0.1\r\n:7000\r\n$1\r\n*\r\n",
        b"*2\r\n:1\r\n-ERR in a list\r\n",
    ];

    #[test]
    fn replies_are_what_the_library_reads() {
        for reply in REPLIES {
            let expected = redis::parse_redis_value(reply).expect("a reply");
            let followed = [reply, b"+OK\r\n"].concat();
            assert_eq!(first(&followed).expect("a reply"), Some((expected, reply.len())), "{reply:?}");
        }
    }

    #[test]
    fn a_reply_is_read_when_it_is_whole() {
        for reply in REPLIES {
            for length in 0..reply.len() {
                assert_eq!(first(&reply[..length]).expect("no nonsense"), None, "{length} of {reply:?}");
            }
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"$x\r\n", b"*1\r\nx\r\n", b"*:\r\n"] {
            assert!(first(text).is_err(), "{text:?}");
        }
        assert!(first(&b"*1\r\n".repeat(1000)).is_err());
    }

    #[test]
    fn a_number_that_is_too_large_is_left_to_the_library() {
        assert_eq!(numbers(b"*1\r\n:9999999999999999999\r\n"), None);
        assert_eq!(numbers(b"*1\r\n:-\r\n"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_reply_the_start_of_one_or_nonsense(
            bytes in "([*$:+-]|[0-9]{1,3}|\r\n|-1|a){0,24}",
            huge in any::<i64>(),
        ) {
            for bytes in [bytes.clone(), format!("*{huge}\r\n{bytes}"), format!("${huge}\r\n{bytes}")] {
                if let Ok(Some((value, length))) = first(bytes.as_bytes()) {
                    prop_assert!(length <= bytes.len());
                    prop_assert_eq!(first(&bytes.as_bytes()[..length]).expect("as before"), Some((value, length)));
                    prop_assert!(!matches!(first(&bytes.as_bytes()[..length - 1]), Ok(Some(_))));
                }
            }
        }

        #[test]
        fn numbers_come_back_as_they_were_written(values in prop::collection::vec(any::<i64>(), 0..8)) {
            let lines = values.iter().flat_map(|value| format!(":{value}\r\n").into_bytes());
            let reply: Vec<u8> = format!("*{}\r\n", values.len()).into_bytes().into_iter().chain(lines).collect();
            let expected = Value::Array(values.into_iter().map(Value::Int).collect());
            prop_assert_eq!(first(&reply).expect("a reply"), Some((expected, reply.len())));
        }
    }
}
