//! The trace of a request, from its `traceparent` (W3C Trace Context).

use crate::head::Fields;
use crate::head::KnownName;

/// 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceId([u8; DIGITS]);

const DIGITS: usize = 32;

/// `00-`, the id, `-`, 16 digits of a span, `-`, two of flags.
const LENGTH: usize = 3 + DIGITS + 1 + 16 + 1 + 2;

impl TraceId {
    /// `None`: there is no `traceparent`, more than one, or an invalid one.
    pub fn of(fields: &Fields) -> Option<Self> {
        Self::read(fields.single(KnownName::TRACEPARENT)?)
    }

    fn read(text: &[u8]) -> Option<Self> {
        let (known, more) = text.split_at_checked(LENGTH)?;
        let [version, id, span, flags] = [&known[..2], &known[3..35], &known[36..52], &known[53..]];
        let is_hex = |digits: &[u8]| digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let is_null = |digits: &[u8]| digits.iter().all(|digit| *digit == b'0');
        let is_valid = [2, 35, 52].iter().all(|&dash| known[dash] == b'-')
            && [version, id, span, flags].into_iter().all(is_hex)
            && version != b"ff"
            && !is_null(id)
            && !is_null(span);
        // Later versions may append more fields. Version 00 has no more.
        let ends = if version == b"00" { more.is_empty() } else { matches!(more, [] | [b'-', ..]) };
        (is_valid && ends).then(|| Self(id.try_into().expect("32 digits stand between the dashes")))
    }

    pub fn as_bytes(&self) -> &[u8; DIGITS] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let found = TraceId::read(text.as_bytes());
        assert_eq!(found.as_ref().map(|id| &id.as_bytes()[..]), expected.map(str::as_bytes), "{text}");
    }

    #[test]
    fn the_id_of_a_valid_field_is_taken() {
        check(&format!("00-{ID}-00f067aa0ba902b7-01"), Some(ID));
        check(&format!("cc-{ID}-00f067aa0ba902b7-00"), Some(ID));
        check(&format!("cc-{ID}-00f067aa0ba902b7-00-what-comes"), Some(ID));
    }

    #[test]
    fn an_invalid_field_names_no_trace() {
        for wrong in [
            String::new(),
            ID.to_owned(),
            format!("00-{ID}-00f067aa0ba902b7"),
            format!("00-{ID}-00f067aa0ba902b7-01-more"),
            format!("cc-{ID}-00f067aa0ba902b7-01more"),
            format!("ff-{ID}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", ID.to_uppercase()),
            format!("00-{ID}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{ID}-00f067aa0ba902b7-0g"),
            format!("00_{ID}-00f067aa0ba902b7-01"),
            format!("00-{}\"-00f067aa0ba902b7-01", &ID[1..]),
        ] {
            check(&wrong, None);
        }
        let mut twice = Fields::default();
        for _ in 0..2 {
            twice.append(KnownName::TRACEPARENT, b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
            assert_eq!(TraceId::of(&twice).is_some(), twice.len() == 1);
        }
    }
}
