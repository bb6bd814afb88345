//! Reads `Accept`: whether a client prefers a page over a problem document.

/// The format that a client prefers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PreferredFormat {
    /// A page.
    Html,
    /// A problem document.
    Problem,
}

/// HTML if the client names it and wants it at least as much as JSON. Browsers do; programs that accept anything do not.
/// Reads the list once, and of a browser's list only the first range.
pub fn preferred_format(accept: &[u8]) -> PreferredFormat {
    let [mut html, mut json, mut application, mut any] = [None; 4];
    for range in accept.split(|byte| *byte == b',') {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let named = parts.next().unwrap_or_default();
        let is = |name: &[u8]| named.eq_ignore_ascii_case(name);
        let most = match named.len() {
            3 if is(b"*/*") => &mut any,
            9 if is(b"text/html") => &mut html,
            13 if is(b"application/*") => &mut application,
            16 if is(b"application/json") => &mut json,
            24 if is(b"application/problem+json") => &mut json,
            _ => continue,
        };
        *most = (*most).max(Some(parts.find_map(weight).unwrap_or(MOST)));
        if html == Some(MOST) {
            // No weight is higher.
            return PreferredFormat::Html;
        }
    }
    // The most specific range that includes JSON gives its weight.
    let json = json.or(application).or(any).unwrap_or(0);
    match html {
        Some(html) if html > 0 && html >= json => PreferredFormat::Html,
        _ => PreferredFormat::Problem,
    }
}

/// The weight of a range without `q`, in thousandths.
const MOST: u16 = 1000;

/// The `q` of a range in thousandths; `None` for any other parameter. A malformed weight counts as zero.
fn weight(parameter: &[u8]) -> Option<u16> {
    let (name, value) = parameter.split_at_checked(2)?;
    if !name.eq_ignore_ascii_case(b"q=") {
        return None;
    }
    let (whole, fraction) = match value {
        [whole, b'.', fraction @ ..] => (*whole, fraction),
        [whole] => (*whole, &b""[..]),
        _ => return Some(0),
    };
    if !matches!(whole, b'0' | b'1') || fraction.len() > 3 || !fraction.iter().all(u8::is_ascii_digit) {
        return Some(0);
    }
    let digit = |position: usize| u16::from(fraction.get(position).map_or(0, |digit| digit - b'0'));
    let thousandths = u16::from(whole - b'0') * MOST + digit(0) * 100 + digit(1) * 10 + digit(2);
    Some(thousandths.min(MOST))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(accept: &str, expected: PreferredFormat) {
        assert_eq!(preferred_format(accept.as_bytes()), expected, "{accept}");
    }

    #[test]
    fn browsers_get_a_page() {
        check("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", PreferredFormat::Html);
        check("text/html, */*", PreferredFormat::Html);
        check("TEXT/HTML", PreferredFormat::Html);
        check("application/json, text/html", PreferredFormat::Html);
    }

    #[test]
    fn programs_get_a_problem_document() {
        check("*/*", PreferredFormat::Problem);
        check("application/json", PreferredFormat::Problem);
        check("application/json, text/plain, */*", PreferredFormat::Problem);
        check("text/html;q=0.5, application/json", PreferredFormat::Problem);
        check("text/html;q=0.5, */*", PreferredFormat::Problem);
        check("text/html;q=0", PreferredFormat::Problem);
        check("text/html;q=x", PreferredFormat::Problem);
        check("text/*", PreferredFormat::Problem);
        check("", PreferredFormat::Problem);
    }

    #[test]
    fn the_most_specific_range_counts() {
        check("text/html;q=0.5, application/json;q=0.4, */*", PreferredFormat::Html);
        check("text/html;q=0.5, application/*;q=0.6, */*;q=0.1", PreferredFormat::Problem);
    }

    #[test]
    fn weights_are_thousandths() {
        assert_eq!(weight(b"q=0.8"), Some(800));
        assert_eq!(weight(b"Q=1.000"), Some(1000));
        assert_eq!(weight(b"q=0.8000"), Some(0));
        assert_eq!(weight(b"level=1"), None);
    }

    proptest! {
        #[test]
        fn any_list_is_read(accept in "(text/html|\\*/\\*|application/json|[;,q=.0-9 ]){0,12}") {
            prop_assert!(preferred_format(accept.as_bytes()) == PreferredFormat::Problem || accept.contains("text/html"));
        }

        #[test]
        fn a_weight_is_at_most_one(parameter in prop::collection::vec(any::<u8>(), 0..10)) {
            prop_assert!(weight(&parameter).is_none_or(|weight| weight <= 1000));
        }
    }
}
