//! Suggests names for misspelt ones, and lists names in messages.

use std::cmp::Reverse;

/// The known name that is closest to a misspelt one. Of two that are as close, the one that begins more alike.
pub fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let folded = written.to_lowercase().replace('-', "_");
    let distance = |key: &str| strsim::osa_distance(&folded, &key.to_lowercase().replace('-', "_"));
    // With more mistakes than this, it is another word.
    let bound = (folded.chars().count() / 3).clamp(1, 4);
    let near = known.iter().map(|key| (distance(key), *key)).filter(|(distance, _)| *distance <= bound);
    let alike = |key: &str| folded.chars().zip(key.chars()).take_while(|(letter, other)| letter == other).count();
    near.min_by_key(|(distance, key)| (*distance, Reverse(alike(key)))).map(|(_, key)| key)
}

/// Joins names as in `a`, `b` and `c`.
pub fn listed(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: Option<&str>) {
        let known = ["listen", "upstream", "upstreams", "limits", "client_ip", "max_keys", "v4"];
        assert_eq!(nearest(written, &known), expected);
    }

    #[test]
    fn misspelt_names_are_found() {
        check("lisen", Some("listen"));
        check("lsiten", Some("listen"));
        check("upstrem", Some("upstream"));
        check("Limits", Some("limits"));
        check("client-ip", Some("client_ip"));
        check("clientip", Some("client_ip"));
        check("max_key", Some("max_keys"));
        assert_eq!(nearest("dely", &["deny", "delay"]), Some("delay"));
        check("ipv4", None);
        check("whitelist", None);
    }

    #[test]
    fn names_are_joined_by_commas_and_a_last_and() {
        assert_eq!(listed(&[]), "");
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b"]), "`a` and `b`");
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
