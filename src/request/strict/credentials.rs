//! `Authorization` as clients write it.

use crate::base64;
use crate::head::Fields;
use crate::head::KnownName;
use crate::request::NotUnderstood;
use crate::request::text::MAX_LENGTH;

/// Whether every application finds the bearer token that the gateway finds, or none.
pub(crate) fn judge_bearer(fields: &Fields) -> Result<(), NotUnderstood> {
    judge(fields, "bearer", |token| !token.is_empty() && token.iter().copied().all(is_of_a_token))
}

/// The same for the user name of the scheme Basic.
pub(crate) fn judge_basic(fields: &Fields) -> Result<(), NotUnderstood> {
    judge(fields, "basic", |encoded| {
        let Some(decoded) = base64::decode_strict(encoded) else { return false };
        let Ok(text) = String::from_utf8(decoded) else { return false };
        text.split_once(':').is_some_and(|(user, _)| user.len() <= MAX_LENGTH && !user.chars().any(char::is_control))
    })
}

/// One line, `Scheme credentials`. A line of another scheme holds no such credential, unless it speaks of it.
fn judge(fields: &Fields, scheme: &str, is_strict: impl Fn(&[u8]) -> bool) -> Result<(), NotUnderstood> {
    let mut lines = fields.get_all(KnownName::AUTHORIZATION);
    let Some(line) = lines.next() else { return Ok(()) };
    let end = memchr::memchr(b' ', line).unwrap_or(line.len());
    let (sent, credentials) = (&line[..end], line.get(end + 1..).unwrap_or_default());
    let is_scheme = !sent.is_empty() && sent.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    let is_one = if sent.eq_ignore_ascii_case(scheme.as_bytes()) {
        is_strict(credentials)
    } else {
        !line.windows(scheme.len()).any(|found| found.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    if lines.next().is_none() && is_scheme && is_one { Ok(()) } else { Err(NotUnderstood::Credentials) }
}

fn is_of_a_token(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[&str]) -> Fields {
        lines.iter().map(|line| (KnownName::AUTHORIZATION, line)).collect()
    }

    #[test]
    fn credentials_as_clients_write_them_are_understood() {
        for line in [
            "Bearer abc",
            "bearer a.b-c_d~e+f/g==",
            "Bearer 1|laravel",
            "Basic YTpi",
            "Digest username=\"x\", realm=\"y\"",
        ] {
            assert_eq!(judge_bearer(&fields(&[line])), Ok(()), "{line}");
        }
        for line in ["Basic YWxpY2U6c2VjcmV0", "basic YWxpY2U6eA==", "Bearer abc", "Basic w6k6eA=="] {
            assert_eq!(judge_basic(&fields(&[line])), Ok(()), "{line}");
        }
        assert_eq!((judge_bearer(&fields(&[])), judge_basic(&fields(&[]))), (Ok(()), Ok(())));
    }

    #[test]
    fn what_applications_read_differently_is_not_understood() {
        let odd = Err(NotUnderstood::Credentials);
        for line in [
            "Bearer  abc",
            "Bearer\tabc",
            "Bearer",
            "Bearer ",
            "Bearerabc",
            "Bearer a, Bearer b",
            "Bearer \"a\"",
            "X bearer=a",
        ] {
            assert_eq!(judge_bearer(&fields(&[line])), odd, "{line}");
        }
        for line in [
            "Basic YWxpY2U6eA",
            "Basic YWxp Y2U6eA==",
            "Basic YWxpY2U6eB==",
            "Basic YWxp!Y2U6eA==",
            "Basic w78_w786eA==",
            "Basic YWxpY2U=",
            "Basic YWxpY2UAOng=",
            "Basic 6Tp4",
            "Basic",
        ] {
            assert_eq!(judge_basic(&fields(&[line])), odd, "{line}");
        }
        assert_eq!(judge_bearer(&fields(&["Bearer a", "Bearer b"])), odd);
    }
}
