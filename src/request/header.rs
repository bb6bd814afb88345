//! Header values as text, and the credentials in them.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::nul;
use crate::base64;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::Name;

/// Every value of a header, as sent, without white space around it. Bytes that are not UTF-8 are read as Latin-1, so
/// that different values stay different. A NUL that an encoder wrote in two or more bytes is read as a NUL.
pub fn header_values<'h>(fields: &'h Fields, name: impl Into<Name<'h>>) -> impl Iterator<Item = Cow<'h, str>> {
    fields.get_all(name).flat_map(|value| readings(value.trim_ascii()))
}

/// The token of every `Authorization` header with the scheme Bearer.
pub fn bearer_tokens(fields: &Fields) -> impl Iterator<Item = Cow<'_, str>> {
    credentials(fields, "bearer").flat_map(readings)
}

/// The user name of every `Authorization` header with the scheme Basic: the text up to the first colon. Base64 is
/// decoded as leniently as the most lenient application does.
pub fn basic_users(fields: &Fields) -> impl Iterator<Item = String> {
    credentials(fields, "basic").flat_map(|encoded| {
        let decoded = base64::decode(encoded);
        let user = decoded.split(|&byte| byte == b':').next().unwrap_or_default();
        readings(user).into_iter().map(Cow::into_owned).collect::<SmallVec<[String; 2]>>()
    })
}

fn credentials<'h>(fields: &'h Fields, scheme: &'static str) -> impl Iterator<Item = &'h [u8]> {
    fields.get_all(KnownName::AUTHORIZATION).filter_map(move |line| {
        let line = line.trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (sent, rest) = line.split_at(end);
        sent.eq_ignore_ascii_case(scheme.as_bytes()).then(|| rest.trim_ascii())
    })
}

fn readings(bytes: &[u8]) -> SmallVec<[Cow<'_, str>; 2]> {
    nul::readings(match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(latin1(bytes)),
    })
}

fn latin1(bytes: &[u8]) -> String {
    let text: String = bytes.iter().copied().map(char::from).collect();
    let nuls = ["\u{c0}\u{80}", "\u{e0}\u{80}\u{80}", "\u{f0}\u{80}\u{80}\u{80}"];
    nuls.iter().fold(text, |text, nul| text.replace(nul, "\0"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn authorization(lines: &[&str]) -> Fields {
        lines.iter().map(|line| (KnownName::AUTHORIZATION, line)).collect()
    }

    #[track_caller]
    fn check_bearer(lines: &[&str], expected: &[&str]) {
        assert_eq!(bearer_tokens(&authorization(lines)).collect::<Vec<_>>(), expected);
    }

    #[track_caller]
    fn check_basic(line: &str, expected: &str) {
        assert_eq!(basic_users(&authorization(&[line])).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn the_token_is_what_follows_the_scheme_in_any_case() {
        check_bearer(&["Bearer abc"], &["abc"]);
        check_bearer(&["bEARER   abc  "], &["abc"]);
        check_bearer(&["Bearer\tabc", "bearer def"], &["abc", "def"]);
        check_bearer(&["Basic YTpi", "abc", "Bearerabc"], &[]);
        check_bearer(&["Bearer"], &[""]);
    }

    #[test]
    fn the_user_is_read_from_every_spelling_of_base64() {
        check_basic("Basic YWxpY2U6c2VjcmV0", "alice");
        check_basic("basic YWxpY2U6eA==", "alice");
        check_basic("BASIC YWxpY2U6eA", "alice");
        check_basic("Basic YWxp Y2U6 eA==", "alice");
        check_basic("Basic w78_w786eA==", "\u{ff}?\u{ff}");
        check_basic("Basic w78/w786eA==", "\u{ff}?\u{ff}");
        check_basic("Basic YTpiOmM=", "a");
        check_basic("Basic YWxpY2U=", "alice");
        check_basic("Basic !!", "");
        check_basic("Basic 6Tp4", "é");
    }

    #[test]
    fn header_lines_are_several_values_as_sent() {
        let name = Name::of("x-api-key");
        let fields = Fields::from_iter([(name, &b"One"[..]), (name, b"tw\xf6")]);
        assert_eq!(header_values(&fields, name).collect::<Vec<_>>(), ["One", "twö"]);
    }

    proptest! {
        #[test]
        fn any_authorization_is_read(line in "(Bearer|basic)?[ \t]{0,2}[ -~\u{e9}]{0,20}") {
            let fields = authorization(&[&line]);
            prop_assert!(bearer_tokens(&fields).all(|token| token.len() <= line.len() && token == token.trim_ascii()));
            prop_assert!(basic_users(&fields).all(|user| user.len() <= line.len() * 2 && !user.contains(':')));
        }
    }
}
