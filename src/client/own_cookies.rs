//! Which cookies are the gateway's own: no application sees them or sets them.

use memchr::memchr2_iter;

use super::device::COOKIE_PREFIX;

/// The start of the name of the cookie of the dashboard. A browser sends it to every port of the host of the admin listener.
pub const DASHBOARD_COOKIE: &str = "portcullis_session";

/// The cookie in which a browser sends its proof of work.
pub const PROOF_COOKIE: &str = "portcullis_pow";

/// Whether a line of `Cookie` has a cookie of ours. Most lines do not even have its name anywhere.
pub fn has_own(line: &[u8]) -> bool {
    let begins = |at: usize| begins_with(&line[at..], COMMON);
    memchr2_iter(b'p', b'P', line).any(begins) && line.split(|byte| *byte == b';').any(is_own)
}

/// Whether some application may read this pair as a cookie of ours: without case, or without quotes and other characters
/// around the name.
pub fn is_own(pair: &[u8]) -> bool {
    let start = pair.iter().position(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').unwrap_or(pair.len());
    let name = NAME_PREFIXES
        .iter()
        .fold(&pair[start..], |name, prefix| if begins_with(name, prefix) { &name[prefix.len()..] } else { name });
    [COOKIE_PREFIX, DASHBOARD_COOKIE, PROOF_COOKIE].iter().any(|own| begins_with(name, own))
}

fn begins_with(text: &[u8], prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// What the names of all of them begin with, but for the prefixes of browsers.
const COMMON: &str = "portcullis_";

/// Of RFC 6265bis: what a browser asks of a cookie with such a name.
const NAME_PREFIXES: [&str; 2] = ["__Host-", "__Secure-"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_of_ours_are_known_in_every_spelling_of_a_browser() {
        for own in [
            "portcullis_device_1=x",
            " Portcullis_Session_9090 = x",
            "\"portcullis_session\"=x",
            "__Host-portcullis_session=x",
            "__secure-portcullis_session_443=x",
            "portcullis_pow=x",
        ] {
            assert!(is_own(own.as_bytes()) && has_own(format!("a=1;{own}; b=2").as_bytes()), "{own}");
        }
        for other in ["", "my_portcullis_session=x", "a=portcullis_session=x", "__Host-session=x", "portcullis=x"] {
            assert!(!is_own(other.as_bytes()) && !has_own(other.as_bytes()), "{other}");
        }
    }
}
