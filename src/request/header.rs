//! Header values as text, and the credentials in them.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use smallvec::SmallVec;

use super::not_understood::NotUnderstood;
use super::nul;
use super::strict::credentials;
use crate::base64;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::Name;

/// Every value of a header, as sent, without white space around it. Bytes that are not UTF-8 are read as Latin-1, so
/// that different values stay different. A NUL that an encoder wrote in two or more bytes is read as a NUL.
pub fn header_values<'h>(fields: &'h Fields, name: impl Into<Name<'h>>) -> impl Iterator<Item = Cow<'h, str>> {
    fields.get_all(name).flat_map(|value| readings(value.trim_ascii()))
}

/// The token of every `Authorization` header with the scheme Bearer. A signed token (JWT) is the text that is signed: its
/// signature can be spelled in many ways.
pub fn bearer_tokens(fields: &Fields) -> impl Iterator<Item = Cow<'_, str>> {
    credentials(fields, "bearer").map(|token| signed_text(token).unwrap_or(token)).flat_map(readings)
}

/// A token that an operator wrote, as [`bearer_tokens`] finds it in a request.
pub fn compared_token(token: &str) -> &str {
    signed_text(token.as_bytes()).and_then(|signed| str::from_utf8(signed).ok()).unwrap_or(token)
}

/// Whether [`bearer_tokens`] surely finds what every application reads.
pub fn judge_bearer(fields: &Fields) -> Result<(), NotUnderstood> {
    credentials::judge_bearer(fields)
}

/// The user name of every `Authorization` header with the scheme Basic: the text up to the first colon, as each decoder of
/// base64 reads it.
pub fn basic_users(fields: &Fields) -> impl Iterator<Item = String> {
    credentials(fields, "basic").flat_map(|encoded| {
        let mut users: SmallVec<[String; 2]> = SmallVec::new();
        for decoded in base64::readings(encoded) {
            let user = decoded.split(|&byte| byte == b':').next().unwrap_or_default();
            users.extend(readings(user).into_iter().map(Cow::into_owned));
            if str::from_utf8(user).is_err() {
                // Some applications drop what is not UTF-8.
                users.push(String::from_utf8_lossy(user).into_owned());
            }
        }
        users
    })
}

/// Whether [`basic_users`] surely finds what every application reads.
pub fn judge_basic(fields: &Fields) -> Result<(), NotUnderstood> {
    credentials::judge_basic(fields)
}

/// The first two of the three segments of a signed token, of which the first is a JSON object.
fn signed_text(token: &[u8]) -> Option<&[u8]> {
    let end = memchr::memrchr(b'.', token)?;
    let (header, payload) = token[..end].split_at(memchr::memchr(b'.', &token[..end])?);
    let header = base64::decode_url_strict(header)?;
    let is_object =
        serde_json::from_slice::<IgnoredAny>(&header).is_ok() && header.trim_ascii_start().starts_with(b"{");
    (is_object && base64::decode_url_strict(&payload[1..]).is_some()).then(|| &token[..end])
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
    fn check_basic(line: &str, expected: &[&str]) {
        assert_eq!(basic_users(&authorization(&[line])).collect::<Vec<_>>(), expected);
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
    fn the_user_is_read_as_every_decoder_reads_it() {
        check_basic("Basic YWxpY2U6c2VjcmV0", &["alice"]);
        check_basic("basic YWxpY2U6eA==", &["alice"]);
        check_basic("BASIC YWxpY2U6eA", &["alice"]);
        check_basic("Basic YWxp Y2U6 eA==", &["alice", "ali"]);
        check_basic("Basic YWxp=Y2U6eA==", &["alice", "ali"]);
        check_basic("Basic YTpiOmM=", &["a"]);
        check_basic("Basic YWxpY2U=", &["alice"]);
        check_basic("Basic !!", &[""]);
        check_basic("Basic 6Tp4", &["é", "\u{fffd}"]);
        let users = |line: &str| basic_users(&authorization(&[line])).collect::<Vec<_>>();
        assert!(users("Basic YWxp-Y2U6eA==").contains(&"alice".to_owned()));
        assert!(users("Basic YWxpY2U6eA==-").contains(&"alice".to_owned()));
    }

    #[test]
    fn a_signed_token_is_the_text_that_is_signed() {
        let signed = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9";
        for signature in ["", "c2ln", "c2lo", "other spelling", "%63"] {
            check_bearer(&[&format!("Bearer {signed}.{signature}")], &[signed]);
            assert_eq!(compared_token(&format!("{signed}.{signature}")), signed);
        }
        for token in ["a.b.c", "W10.e30.c2ln", "eyJh.b", "e30=.e30.x", "e30.e30", "e30.e30.x.y"] {
            check_bearer(&[&format!("Bearer {token}")], &[token]);
            assert_eq!(compared_token(token), token);
        }
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
            prop_assert!(basic_users(&fields).all(|user| user.len() <= line.len() * 3 && !user.contains(':')));
        }
    }
}
