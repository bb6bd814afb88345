//! The format of list files: one entry a line, `#` comments.

use ipnet::IpNet;

use super::addresses::AddressSet;
use super::addresses::InvalidNetwork;
use super::addresses::network;

/// One entry of a list file, trimmed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ListEntry<'t> {
    /// From 1.
    pub line: usize,
    /// Where it starts in its line: from 1, in characters.
    pub column: usize,
    pub text: &'t str,
}

/// A line that is no address and no network.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct InvalidLine {
    pub line: usize,
    pub column: usize,
    pub reason: InvalidNetwork,
}

/// The entries of a list file, without blank lines and comments. A comment starts with a `#` at the start of a line or
/// after white space, so that a value may hold a `#`.
pub fn entries(text: &str) -> impl Iterator<Item = ListEntry<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.split('\n')).filter_map(|(line, whole)| {
        let content = uncommented(whole);
        let text = content.trim();
        if text.is_empty() {
            return None;
        }
        let indent = &content[..content.len() - content.trim_start().len()];
        Some(ListEntry { line, column: indent.chars().count() + 1, text })
    })
}

/// Parses a file of addresses and networks. The error has every line that is neither.
pub fn addresses(text: &str) -> Result<AddressSet, Vec<InvalidLine>> {
    let mut errors = Vec::new();
    let mut keep = |entry: ListEntry<'_>| -> Option<IpNet> {
        let ListEntry { line, column, text } = entry;
        network(text).map_err(|reason| errors.push(InvalidLine { line, column, reason })).ok()
    };
    let set = entries(text).filter_map(&mut keep).collect();
    if errors.is_empty() { Ok(set) } else { Err(errors) }
}

fn uncommented(line: &str) -> &str {
    let starts_comment = |at: usize| at == 0 || line[..at].chars().next_back().is_some_and(char::is_whitespace);
    let comment = memchr::memchr_iter(b'#', line.as_bytes()).find(|&at| starts_comment(at));
    comment.map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::client::ClientIp;

    #[track_caller]
    fn check(text: &str, expected: &[(usize, usize, &str)]) {
        let found: Vec<_> = entries(text).map(|entry| (entry.line, entry.column, entry.text)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn entries_are_lines_without_comments_and_white_space() {
        check("", &[]);
        check("10.0.0.1", &[(1, 1, "10.0.0.1")]);
        check("# abusers\n\n  10.0.0.1  # first\n10.0.0.2\t#second\n", &[(3, 3, "10.0.0.1"), (4, 1, "10.0.0.2")]);
        check("   \n\t# only a comment\n", &[]);
    }

    #[test]
    fn files_of_other_systems_read_the_same() {
        check("\u{feff}10.0.0.1\r\n10.0.0.2\r\n", &[(1, 1, "10.0.0.1"), (2, 1, "10.0.0.2")]);
        check("\u{feff}# comment\n10.0.0.2", &[(2, 1, "10.0.0.2")]);
    }

    #[test]
    fn a_value_may_hold_a_number_sign() {
        check("key#1 # the first\n#key\nkey#", &[(1, 1, "key#1"), (3, 1, "key#")]);
        check("key number 1", &[(1, 1, "key number 1")]);
    }

    #[test]
    fn every_line_that_is_no_network_is_reported() {
        let errors = addresses("10.0.0.1\n  10.0.0.x\n# fine\n10.0.0.0/40 # no\n").unwrap_err();
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "line 2, column 3: `10.0.0.x` is not an address or network, write one such as `198.51.100.0/24` or \
                 `2001:db8::/32`",
                "line 4, column 1: `/40` is not a prefix length, expected 0 to 32",
            ]
        );
    }

    #[test]
    fn a_file_of_addresses_becomes_a_set() {
        let set = addresses("198.51.100.0/24\n2001:db8::/32\r\n").unwrap();
        assert!(set.contains(ClientIp::new([198, 51, 100, 3].into())));
        assert!(!set.contains(ClientIp::new([198, 51, 101, 3].into())));
    }

    proptest! {
        #[test]
        fn any_file_has_its_entries_where_they_are_said_to_be(text in "(10[.]0[.]0[.]1|::1/64|#| |\t|\r\n|\n|x|\u{e9}){0,20}") {
            let lines: Vec<&str> = text.split('\n').collect();
            for entry in entries(&text) {
                prop_assert!(!entry.text.is_empty() && entry.text == entry.text.trim());
                let behind: String = lines[entry.line - 1].chars().skip(entry.column - 1).collect();
                prop_assert!(behind.starts_with(entry.text));
            }
            let all_are_good = addresses(&text).is_ok();
            prop_assert_eq!(all_are_good, entries(&text).all(|entry| network(entry.text).is_ok()));
        }
    }
}
