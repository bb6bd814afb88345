//! Reads the three kinds of forwarding headers into addresses, from the right, where trusted proxies write.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::wire::head::{FieldName, Fields, KnownName, Name};

/// The header in which a trusted proxy names the client.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ForwardingHeader {
    #[default]
    XForwardedFor,
    Forwarded,
    /// A header that holds one address, such as `cf-connecting-ip`.
    Single(FieldName),
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a header name")]
pub struct InvalidForwardingHeader(pub String);

impl ForwardingHeader {
    /// The address of each entry of the list, the last entry first. `None` where the entry holds no address. Several
    /// lines are one list, and empty entries are left out. A header for one address that holds a list is read as a
    /// list.
    pub(super) fn entries_from_the_right<'h>(&'h self, fields: &'h Fields) -> impl Iterator<Item = Option<IpAddr>> {
        let name: Name<'h> = self.into();
        let is_forwarded = matches!(self, Self::Forwarded);
        fields
            .get_all(name)
            .rev()
            .flat_map(move |line| FromTheRight::new(line, b',', is_forwarded))
            .map(<[u8]>::trim_ascii)
            .filter(|entry| !entry.is_empty())
            .map(move |entry| if is_forwarded { forwarded_for(entry) } else { address(entry) })
    }
}

impl<'h> From<&'h ForwardingHeader> for Name<'h> {
    fn from(header: &'h ForwardingHeader) -> Self {
        match header {
            ForwardingHeader::XForwardedFor => KnownName::X_FORWARDED_FOR.into(),
            ForwardingHeader::Forwarded => KnownName::FORWARDED.into(),
            ForwardingHeader::Single(name) => name.into(),
        }
    }
}

/// The last element of a list, which the nearest proxy wrote. Several lines are one list, and empty elements are left out.
pub fn last_element(fields: &Fields, name: KnownName) -> Option<&[u8]> {
    let elements = fields.get_all(name).rev().flat_map(|line| FromTheRight::new(line, b',', false));
    elements.map(<[u8]>::trim_ascii).find(|element| !element.is_empty())
}

impl fmt::Display for ForwardingHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Name::from(self).as_str())
    }
}

impl FromStr for ForwardingHeader {
    type Err = InvalidForwardingHeader;

    fn from_str(text: &str) -> Result<Self, InvalidForwardingHeader> {
        let name: FieldName = text.parse().map_err(|_| InvalidForwardingHeader(text.to_owned()))?;
        Ok(match Name::from(&name) {
            Name::Known(KnownName::X_FORWARDED_FOR) => Self::XForwardedFor,
            Name::Known(KnownName::FORWARDED) => Self::Forwarded,
            Name::Known(_) | Name::Other(_) => Self::Single(name),
        })
    }
}

/// The address in one entry, without port, brackets, quotes and zone. `None` for anything else, such as `unknown`.
pub fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = entry.trim_ascii();
    if entry.len() > MAX_ENTRY {
        return None;
    }
    let entry = std::str::from_utf8(unquoted(entry)).ok()?.trim();
    if let Some(rest) = entry.strip_prefix('[') {
        let (inner, port) = rest.split_once(']')?;
        return port_or_nothing(port).then(|| bare_address(inner))?;
    }
    match entry.split_once(':') {
        // One colon is a port; an IPv6 address has at least two.
        Some((v4, port)) if !port.contains(':') => is_port(port).then(|| v4.parse().ok().map(IpAddr::V4))?,
        _ => bare_address(entry),
    }
}

/// An address with nothing around it but, for IPv6, a zone.
fn bare_address(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        Some((v6, _zone)) => v6.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse().ok(),
    }
}

fn port_or_nothing(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(is_port)
}

/// Digits, or the `_name` that RFC 7239 allows in place of a port.
fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
        || text
            .strip_prefix('_')
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)))
}

/// The address in the `for` parameter of one element of `Forwarded`.
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    for parameter in FromTheRight::new(element, b';', true) {
        let Some(equals) = parameter.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = parameter.split_at(equals);
        if !name.trim_ascii().eq_ignore_ascii_case(b"for") {
            continue;
        }
        // Two of them: a client added one to what a proxy wrote, and they cannot be told apart.
        if found.is_some() {
            return None;
        }
        found = Some(&value[1..]);
    }
    let value = found?.trim_ascii();
    if value.len() > MAX_ENTRY {
        return None;
    }
    address(&unescaped(value))
}

/// The text between two quotes. Without quotes the text itself.
fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        _ => text,
    }
}

/// Removes the backslashes of a quoted string. Leaves other text as it is.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.starts_with(b"\"") || !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        plain.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    Cow::Owned(plain)
}

/// The parts of a list, the last one first.
///
/// Quoted strings are read from the right as well. A trusted proxy wrote the right part, so it is well-formed. The left
/// part came from outside and may hold a quote that is never closed.
struct FromTheRight<'t> {
    rest: Option<&'t [u8]>,
    separator: u8,
    quotes: bool,
}

impl<'t> FromTheRight<'t> {
    fn new(text: &'t [u8], separator: u8, quotes: bool) -> Self {
        Self { rest: Some(text), separator, quotes }
    }
}

impl<'t> Iterator for FromTheRight<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let text = self.rest.take()?;
        let mut quoted = false;
        for (at, byte) in text.iter().enumerate().rev() {
            if self.quotes && *byte == b'"' {
                // Inside a well-formed string a quote stands behind an odd number of backslashes.
                let escaped = quoted && text[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
                quoted ^= !escaped;
            } else if *byte == self.separator && !quoted {
                self.rest = Some(&text[..at]);
                return Some(&text[at + 1..]);
            }
        }
        Some(text)
    }
}

/// Longer than any address with brackets, zone and port.
const MAX_ENTRY: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: &str, expected: Option<&str>) {
        assert_eq!(
            address(entry.as_bytes()).map(|found| found.to_canonical().to_string()).as_deref(),
            expected,
            "{entry:?}"
        );
    }

    #[track_caller]
    fn check_forwarded(line: &str, expected: &[Option<&str>]) {
        let fields = Fields::from_iter([(KnownName::FORWARDED, line)]);
        let found: Vec<_> = ForwardingHeader::Forwarded
            .entries_from_the_right(&fields)
            .map(|entry| entry.map(|found| found.to_canonical().to_string()))
            .collect();
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected, "{line:?}");
    }

    #[test]
    fn an_address_is_read_in_every_spelling() {
        check("1.2.3.4", Some("1.2.3.4"));
        check(" 1.2.3.4\t", Some("1.2.3.4"));
        check("1.2.3.4:80", Some("1.2.3.4"));
        check("1.2.3.4:", Some("1.2.3.4"));
        check("1.2.3.4:_hidden", Some("1.2.3.4"));
        check("\"1.2.3.4:80\"", Some("1.2.3.4"));
        check("[1.2.3.4]:80", Some("1.2.3.4"));
        check("::1", Some("::1"));
        check("[::1]", Some("::1"));
        check("[::1]:80", Some("::1"));
        check("\"[2001:db8::1]:4711\"", Some("2001:db8::1"));
        check("2001:DB8::1", Some("2001:db8::1"));
        check("2001:0db8:0:0:0:0:0:1", Some("2001:db8::1"));
        check("fe80::1%eth0", Some("fe80::1"));
        check("[fe80::1%25eth0]:443", Some("fe80::1"));
        check("::ffff:1.2.3.4", Some("1.2.3.4"));
        check("::ffff:0102:0304", Some("1.2.3.4"));
        check("[::ffff:1.2.3.4]:80", Some("1.2.3.4"));
        check("0:0:0:0:0:FFFF:1.2.3.4", Some("1.2.3.4"));
    }

    #[test]
    fn what_is_no_address_is_none() {
        for entry in [
            "unknown",
            "_hidden",
            "garbage",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "1.2.3.004",
            "256.1.1.1",
            "0x7f.0.0.1",
            "2130706433",
            "1.2.3.4/32",
            "1.2.3.4:http",
            "1.2.3.4 5.6.7.8",
            "[::1",
            "::1]",
            "[::1]80",
            "[::1]:http",
            "1.2.3.4%eth0",
            "1:2:3:4:5:6:7:8:9",
            ":::",
            "\"1.2.3.4",
            "localhost",
            "",
        ] {
            check(entry, None);
        }
        check(&format!("fe80::1%{}", "x".repeat(200)), None);
        assert_eq!(address(b"1.2.3.\xff"), None);
    }

    #[test]
    fn the_for_parameter_is_found_in_every_spelling_of_an_element() {
        check_forwarded("for=192.0.2.43", &[Some("192.0.2.43")]);
        check_forwarded("For=\"[2001:db8:cafe::17]:4711\"", &[Some("2001:db8:cafe::17")]);
        check_forwarded("proto=https ; FOR = 192.0.2.43 ; by=203.0.113.9", &[Some("192.0.2.43")]);
        check_forwarded("for=192.0.2.43, for=198.51.100.17", &[Some("198.51.100.17"), Some("192.0.2.43")]);
        check_forwarded("for=unknown,, ,for=\"_gazonk\"", &[None, None]);
        check_forwarded("proto=https;by=203.0.113.9", &[None]);
        check_forwarded("host=\"a, for=9.9.9.9; b\";for=1.2.3.4", &[Some("1.2.3.4")]);
        check_forwarded(r#"for="\[::1\]""#, &[Some("::1")]);
        check_forwarded(r#"host="a\", for=9.9.9.9, \\";for=1.2.3.4"#, &[Some("1.2.3.4")]);
    }

    #[test]
    fn two_for_parameters_in_one_element_are_no_address() {
        check_forwarded("for=1.2.3.4;host=x;for=5.6.7.8", &[None]);
    }

    #[test]
    fn a_quote_left_open_by_the_client_hides_nothing_a_proxy_wrote() {
        check_forwarded("for=\"evil, for=192.0.2.43", &[Some("192.0.2.43"), None]);
        check_forwarded("for=\"evil, for=\"[2001:db8::9]:1234\"", &[Some("2001:db8::9"), None]);
    }

    #[test]
    fn the_two_list_headers_differ_from_single_ones_in_any_case() {
        assert_eq!("X-Forwarded-For".parse(), Ok(ForwardingHeader::XForwardedFor));
        assert_eq!("Forwarded".parse(), Ok(ForwardingHeader::Forwarded));
        let single = "cf-connecting-ip".parse().expect("a name");
        assert_eq!("CF-Connecting-IP".parse(), Ok(ForwardingHeader::Single(single)));
        assert_eq!("no header".parse::<ForwardingHeader>(), Err(InvalidForwardingHeader("no header".to_owned())));
    }
}
