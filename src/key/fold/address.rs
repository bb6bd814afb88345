//! Mail addresses that reach one mailbox.

use super::letters::Keep;
use super::letters::Style;
use super::letters::letters;

/// The address of the mailbox, in ASCII: without what stands behind `+`, and at Gmail without dots. `None`: the text is no
/// address.
pub(super) fn mailbox(text: &str, style: Style) -> Option<String> {
    let (local, domain) = text.split_once('@')?;
    if domain.contains('@') || text.chars().any(char::is_whitespace) {
        return None;
    }
    let domain = letters(domain, style, Keep::Punctuation);
    let domain = domain.trim_end_matches('.');
    let local = letters(local, style, Keep::Punctuation);
    let local = local.split('+').next().unwrap_or_default();
    let (local, domain) =
        if GMAIL.contains(&domain) { (local.replace('.', ""), GMAIL[0]) } else { (local.to_owned(), domain) };
    let is_empty = |text: &str| !text.chars().any(char::is_alphanumeric);
    (!is_empty(&local) && !is_empty(domain)).then(|| format!("{local}@{domain}"))
}

/// Whether an address is at Gmail, where nobody else has the same one with other dots.
pub(super) fn is_at_gmail(mailbox: &str) -> bool {
    mailbox.split_once('@').is_some_and(|(_, domain)| GMAIL.contains(&domain))
}

/// Two names of one domain.
const GMAIL: [&str; 2] = ["gmail.com", "googlemail.com"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(mailbox(text, Style::Usual).as_deref(), expected, "{text}");
    }

    #[test]
    fn an_address_is_that_of_its_mailbox() {
        check("alice@example.com", Some("alice@example.com"));
        check("alice+shop@example.com", Some("alice@example.com"));
        check("a.l.ice@example.com", Some("a.l.ice@example.com"));
        check("a.l.ice+x+y@gmail.com", Some("alice@gmail.com"));
        check("a.lice@googlemail.com.", Some("alice@gmail.com"));
        check("Àlice@Example.com", Some("alice@example.com"));
        check("root@localhost", Some("root@localhost"));
    }

    #[test]
    fn what_is_no_address_says_so() {
        for text in
            ["alice", "@example.com", "alice@", "a@b@c", "al ice@example.com", "+x@example.com", "...@gmail.com"]
        {
            check(text, None);
        }
    }
}
