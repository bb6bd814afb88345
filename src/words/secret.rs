//! Masks what no message may show: passwords in URLs, and the paths of webhooks.

/// Masks user names and passwords in URLs. The length stays the same, so that carets still fit.
pub fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((start, end)) = credentials(rest) {
        masked.push_str(&rest[..start]);
        masked.extend(rest[start..end].chars().map(|_| '*'));
        rest = &rest[end..];
    }
    masked + rest
}

/// Masks user names and passwords in URLs, with stars that do not tell their length.
pub fn hidden(text: &str) -> String {
    let masked = masked(text);
    if masked == text { masked } else { shortened(&masked) }
}

/// Runs of stars have one length, which hides the length of the secret.
pub fn shortened(shown: &str) -> String {
    let mut parts = shown.split('*').filter(|part| !part.is_empty());
    let first = if shown.starts_with('*') { "" } else { parts.next().unwrap_or_default() };
    let mut text = parts.fold(first.to_owned(), |text, part| text + MASK + part);
    if shown.ends_with('*') {
        text.push_str(MASK);
    }
    text
}

/// The text that is shown instead of a secret.
pub const MASK: &str = "***";

/// The byte range of the first user name and password in a text.
fn credentials(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(at) = text[from..].find("://") {
        let start = from + at + 3;
        let after = &text[start..];
        let length = if is_web(&text[..start - 3]) {
            let end = after.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '`'));
            after[..end.unwrap_or(after.len())].rfind('@')
        } else {
            // A password in the URL of a Redis may hold anything, spaces and quotes too.
            after.rfind('@')
        };
        if let Some(length) = length {
            return Some((start, start + length));
        }
        from = start;
    }
    // The URL of a Redis without its slashes.
    let start = from + text[from..].to_ascii_lowercase().find("redis:")? + "redis:".len();
    let end = start + text[start..].rfind('@')?;
    Some((start, end))
}

/// Whether a text ends in `http` or `https`, whose URLs end where words end.
fn is_web(before: &str) -> bool {
    let scheme = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Whether a line has the key `webhook`, or looks like it.
pub fn holds_webhook(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let mut after =
        line.match_indices("webhook").map(|(at, word)| line[at + word.len()..].trim_start_matches(['"', '\'']));
    after.any(|rest| rest.trim_start().starts_with(':')) || (line.contains("hook") && line.contains("://"))
}

/// Whether a text is the address of a webhook, also if its scheme is misspelt or missing.
pub fn looks_like_webhook(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let start = host_start(&text);
    let host = text[start..].split(['/', '?', '#', '\\']).next().unwrap_or_default();
    text.contains("hook") && (start > 0 || host.contains('.'))
}

/// Whether a text is a URL with a user name and a password that is misspelt, so that other programs would not see them.
pub fn is_misspelt_with_password(text: &str) -> bool {
    let start = host_start(text);
    let after = &text[start..];
    let Some(at) = after.rfind('@') else { return false };
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    let is_torn = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '`');
    if start == 0 {
        let user = after.split(':').next().unwrap_or_default();
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '+' | '%');
        return user.len() < at && user.chars().all(is_name) && user != "mailto" && !after[..at].contains(is_torn);
    }
    if authority.contains('@') {
        return !text[..start].ends_with("://") || after[..at].contains(is_torn);
    }
    // Behind a host there may be an `@`.
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
    !port.bytes().all(|digit| digit.is_ascii_digit()) || host.contains(is_torn)
}

/// Masks everything between the scheme, if there is one, and the last `@`. The length stays the same.
pub fn before_at(url: &str) -> String {
    let Some(end) = url.rfind('@') else { return url.to_owned() };
    let start = url.find("://").map(|at| at + 3).filter(|start| *start <= end).unwrap_or_default();
    let hidden = url[start..end].chars().map(|_| '*');
    url[..start].chars().chain(hidden).chain(url[end..].chars()).collect()
}

/// Masks what follows the host in one URL, to the end of the text. The length stays the same.
pub fn without_path(url: &str) -> String {
    let host = host_start(url);
    let Some(path) = url[host..].find(['/', '?', '#', '\\']).map(|at| host + at + 1) else { return url.to_owned() };
    let stars = url[path..].chars().map(|_| '*');
    url[..path].chars().chain(stars).collect()
}

/// Where the host of a URL begins, also if its scheme is misspelt.
fn host_start(url: &str) -> usize {
    if let Some(at) = url.find("://") {
        return at + 3;
    }
    let word = url.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_scheme = ["http", "https"].iter().any(|scheme| url[..word].eq_ignore_ascii_case(scheme));
    let after = url[word..].bytes().take_while(|byte| matches!(byte, b':' | b'/' | b'\\')).count();
    if is_scheme { word + after } else { 0 }
}

/// Masks what follows the host in URLs, with a scheme and without. The length stays the same.
pub fn without_paths(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`')) {
        let host = word.find("://").map_or(0, |at| at + 3);
        let Some(path) = word[host..].find(['/', '?', '#']).map(|at| host + at + 1).filter(|path| *path > 1) else {
            result.push_str(word);
            continue;
        };
        // A bracket, comma or quote at the end is not part of the URL.
        let end = path + word[path..].trim_end_matches(|c: char| c.is_whitespace() || ",}])'\"`".contains(c)).len();
        result.push_str(&word[..path]);
        result.extend(word[path..end].chars().map(|_| '*'));
        result.push_str(&word[end..]);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_masked() {
        assert_eq!(masked("a: http://u:p@h/x@y 'redis://:é@h'"), "a: http://***@h/x@y 'redis://**@h'");
        assert_eq!(masked("http://h ://"), "http://h ://");
    }

    #[test]
    fn stars_do_not_tell_a_length() {
        assert_eq!(shortened("redis://*********@h"), "redis://***@h");
        assert_eq!(shortened("http://**@a http://***@b"), "http://***@a http://***@b");
        assert_eq!(shortened("https://h/******"), "https://h/***");
        assert_eq!(hidden("https://user:word@h/a*b"), "https://***@h/a***b");
        assert_eq!(hidden("https://h/a*b**"), "https://h/a*b**");
    }

    #[test]
    fn a_password_of_redis_is_masked_whatever_it_holds_and_however_it_is_misspelt() {
        for line in [
            "redis://:secret/word@h",
            "redis: {url: 'redis://u:secret \"word@h'}",
            "urls: [redis://:secret@h:1, redis://:word@h:2]",
            "rdis://:sec/ret@h",
            "url: redis:u:secret@h",
            "url: REDIS:/u:secret@h",
            "http://h rediss://u:secret@x@h",
        ] {
            let masked = masked(line);
            assert!(!masked.contains("sec") && !masked.contains("word"), "{masked}");
            assert!(masked.ends_with(&line[line.rfind('@').unwrap()..]), "{masked}");
            assert_eq!(masked.chars().count(), line.chars().count());
        }
        assert_eq!(masked("redis: {url: redis://127.0.0.1:6379/0}"), "redis: {url: redis://127.0.0.1:6379/0}");
    }

    #[test]
    fn the_path_of_a_webhook_is_masked() {
        for (line, expected) in [
            (
                "ops: {webhook: https://h.example/T0/s3cret, every: 1m}",
                "ops: {webhook: https://h.example/*********, every: 1m}",
            ),
            ("webhook: 'https://h.example?key=s3cret'", "webhook: 'https://h.example?**********'"),
            ("webhook: h.example/s3cret", "webhook: h.example/******"),
            ("https://h.example/s3cret}}", "https://h.example/******}}"),
            ("https://h.example", "https://h.example"),
            ("a webhook is an http:// or https:// URL", "a webhook is an http:// or https:// URL"),
        ] {
            assert_eq!(without_paths(line), expected);
        }
    }

    #[test]
    fn of_one_url_everything_behind_the_host_is_masked() {
        for (url, expected) in [
            ("https://h.example/T0/my secret", "https://h.example/************"),
            ("http//h.example/T0", "http//h.example/**"),
            ("https:\\/\\/h.example\\/T0", "https:\\/\\/h.example\\***"),
            ("h.example?k=1", "h.example?***"),
            ("h.example", "h.example"),
        ] {
            assert_eq!(without_path(url), expected);
        }
    }

    #[test]
    fn everything_before_the_last_at_is_masked() {
        for (url, expected) in
            [("u:p/w@h:1", "*****@h:1"), ("http://u:p/w@h@i", "http://*******@i"), ("h", "h"), ("a@://h", "*@://h")]
        {
            assert_eq!(before_at(url), expected);
        }
    }

    #[test]
    fn lines_with_a_webhook_are_found() {
        for line in ["webhook: x", "ops: {\"webhook\" : x}", "Webhook: x", "webhok: https://hooks.example.com/T0"] {
            assert!(holds_webhook(line), "{line}");
        }
        for line in ["  - match: POST /webhooks/*", "servers: [http://10.0.0.1]"] {
            assert!(!holds_webhook(line), "{line}");
        }
    }
}
