//! The trace of a request, from its `traceparent` (W3C Trace Context).

use crate::digits::hex;
use crate::head::Fields;
use crate::head::KnownName;

/// 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceId([u8; DIGITS]);

const DIGITS: usize = 32;
const SPAN_DIGITS: usize = 16;

/// `00-`, the id, `-`, the digits of a span, `-`, two of flags.
const LENGTH: usize = 3 + DIGITS + 1 + SPAN_DIGITS + 1 + 2;

/// What a valid `traceparent` says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::record) struct TraceParent {
    pub(in crate::record) trace: TraceId,
    span: [u8; SPAN_DIGITS],
    /// The sender of the request records the trace.
    pub(in crate::record) is_sampled: bool,
}

impl TraceParent {
    /// `None`: there is no `traceparent`, more than one, or an invalid one.
    pub(in crate::record) fn of(fields: &Fields) -> Option<Self> {
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
        (is_valid && ends).then(|| Self {
            trace: TraceId(id.try_into().expect("32 digits stand between the dashes")),
            span: span.try_into().expect("16 digits stand between the dashes"),
            is_sampled: value(flags) & 1 == 1,
        })
    }

    /// The trace and the span as numbers.
    pub(in crate::record) fn ids(&self) -> (u128, u64) {
        let span = value(&self.span);
        (value(&self.trace.0), u64::try_from(span).expect("16 digits are 64 bits"))
    }
}

/// The number that hexadecimal digits are, 32 of them at most.
fn value(digits: &[u8]) -> u128 {
    let digits = digits.iter().map(|digit| char::from(*digit).to_digit(16).unwrap_or(0));
    digits.fold(0, |value, digit| (value << 4) | u128::from(digit))
}

impl TraceId {
    /// `None`: there is no `traceparent`, more than one, or an invalid one.
    pub fn of(fields: &Fields) -> Option<Self> {
        TraceParent::of(fields).map(|parent| parent.trace)
    }

    pub fn as_bytes(&self) -> &[u8; DIGITS] {
        &self.0
    }
}

impl From<u128> for TraceId {
    fn from(id: u128) -> Self {
        Self(hex(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let found = TraceParent::read(text.as_bytes()).map(|parent| parent.trace);
        assert_eq!(found.as_ref().map(|id| &id.as_bytes()[..]), expected.map(str::as_bytes), "{text}");
    }

    #[test]
    fn the_id_of_a_valid_field_is_taken() {
        check(&format!("00-{ID}-00f067aa0ba902b7-01"), Some(ID));
        check(&format!("cc-{ID}-00f067aa0ba902b7-00"), Some(ID));
        check(&format!("cc-{ID}-00f067aa0ba902b7-00-what-comes"), Some(ID));
    }

    #[test]
    fn the_numbers_and_the_flag_are_those_of_the_field() {
        for (flags, is_sampled) in [("00", false), ("01", true), ("03", true), ("02", false)] {
            let text = format!("00-{ID}-00f067aa0ba902b7-{flags}");
            let parent = TraceParent::read(text.as_bytes()).expect("a valid field");
            assert_eq!(parent.is_sampled, is_sampled, "{flags}");
            assert_eq!(parent.ids(), (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7));
            assert_eq!(TraceId::from(parent.ids().0), parent.trace);
        }
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
