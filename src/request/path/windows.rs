//! Parts of a path that servers on Windows drop: name endings that the file system ignores, and sessions of ASP.NET.

use crate::request::text::is_blank;

/// The path as the file system names it: without dots and blanks at the end of a name, and without `::$DATA`, which is
/// the file itself.
pub(super) fn named(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        let name = segment.split("::$").next().unwrap_or_default().trim_end_matches(is_blank);
        match (name, name.trim_end_matches(|c| c == '.' || is_blank(c))) {
            ("..", _) => _ = segments.pop(),
            (_, "") => {}
            (_, name) => segments.push(name),
        }
    }
    if segments.is_empty() {
        return "/".to_owned();
    }
    let mut named = String::with_capacity(path.len());
    for segment in segments {
        named.push('/');
        named.push_str(segment);
    }
    named
}

/// The path without the tickets that ASP.NET puts there for browsers without cookies: `/login` for `/(S(1))/login`.
/// `None` when it has none.
pub(super) fn without_session(path: &str) -> Option<String> {
    let mut without = String::new();
    let mut rest = path;
    while let Some(start) = rest.find("/(") {
        let inside = &rest[start + 2..];
        let behind = tickets(inside);
        without.push_str(if behind.is_some() { &rest[..start] } else { &rest[..start + 2] });
        rest = behind.unwrap_or(inside);
    }
    if without.len() + rest.len() == path.len() {
        return None;
    }
    without.push_str(rest);
    Some(if without.starts_with('/') { without } else { format!("/{without}") })
}

/// The text after tickets such as `S(1)F(2))`: each is a letter and a text in brackets, and a bracket ends them.
fn tickets(mut text: &str) -> Option<&str> {
    loop {
        let behind = text.strip_prefix(|letter: char| letter.is_ascii_alphabetic())?.strip_prefix('(')?;
        let end = behind.find(['(', ')', '/']).filter(|end| behind[*end..].starts_with(')'))?;
        text = &behind[end + 1..];
        if let Some(rest) = text.strip_prefix(')') {
            return Some(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_endings_of_a_name_are_removed() {
        for (path, expected) in [
            ("/login", "/login"),
            ("/login.", "/login"),
            ("/login. .", "/login"),
            ("/admin./x", "/admin/x"),
            ("/admin /x.php..", "/admin/x.php"),
            ("/a/.../b", "/a/b"),
            ("/a/.. /b", "/b"),
            ("/login.asp::$DATA", "/login.asp"),
            ("/admin::$INDEX_ALLOCATION/x", "/admin/x"),
            ("/", "/"),
        ] {
            assert_eq!(named(path), expected, "{path}");
        }
    }

    #[test]
    fn a_session_is_no_part_of_the_path() {
        for (path, expected) in [
            ("/(S(abc))/login.aspx", Some("/login.aspx")),
            ("/app/(S(1)F(2))/login", Some("/app/login")),
            ("/lo/(S(x))gin", Some("/login")),
            ("/(S(1))", Some("/")),
            ("/(S(1))login", Some("/login")),
            ("/(X(1))/(A(1))/a", Some("/a")),
            ("/(login)/a", None),
            ("/(S(1)/a", None),
            ("/(S(a/b))/a", None),
            ("/wiki/Login_(S(1))", None),
            ("/login", None),
        ] {
            assert_eq!(without_session(path).as_deref(), expected, "{path}");
        }
    }
}
