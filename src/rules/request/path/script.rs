//! Scripts in paths: a server that runs a script hands it the rest of the path, and runs index scripts that no path
//! names.

use crate::rules::request::text::is_blank;

/// Extensions of files that servers run: PHP, CGI, ASP, Java and similar.
const EXTENSIONS: [&str; 43] = [
    "php", "phtml", "phar", "phps", "pht", "cgi", "fcgi", "scgi", "pl", "plx", "py", "wsgi", "rb", "rhtml", "sh",
    "lua", "tcl", "exe", "dll", "asp", "aspx", "ashx", "asmx", "asax", "axd", "svc", "cshtml", "vbhtml", "cer", "jsp",
    "jspx", "jspa", "jsf", "faces", "seam", "do", "action", "cfm", "cfml", "cfc", "nsf", "shtml", "hh",
];

/// The names that Apache, nginx, IIS and Tomcat look for in a directory, with any of the extensions above or below.
const INDEX_NAMES: [&str; 2] = ["index", "default"];

const PAGES: [&str; 3] = ["html", "htm", "xhtml"];

/// Directories in which every file is a script.
const CGI_DIRECTORIES: [&str; 5] = ["cgi-bin", "cgi", "fcgi-bin", "scgi-bin", "cgi-sys"];

/// Whether applications may read a canonical path as another path because of a script in it.
pub(super) fn is_in(path: &str) -> bool {
    segments(path).any(|segment| {
        let name = segment.of(path);
        if segment.end < path.len() { is_script(name) } else { is_index(name) }
    })
}

/// Whether a segment may be the name of an index: a quick check of its first letter.
pub(super) fn begins_like_index(segment: &[u8]) -> bool {
    matches!(segment.first(), Some(b'i' | b'I' | b'd' | b'D'))
}

/// The other readings of a canonical path that names scripts. A server that hands the rest of the path to a script
/// reads the script alone (`/login.php` for `/login.php/x`). An application whose front controller it is reads the path
/// without it (`/login` for `/index.php/login`, `/a` for `/a/index.php`), and so may be `/index.php/login.php/x` `/login.php`.
pub(super) fn readings(path: &str, mut found: impl FnMut(&str)) {
    let mut scripts = segments(path).filter(|segment| segment.end < path.len() && is_script(segment.of(path)));
    if let Some(first) = scripts.next() {
        let mut last = first;
        for script in std::iter::once(first).chain(scripts) {
            let alone = &path[..script.end];
            found(alone);
            directory(alone).into_iter().for_each(&mut found);
            if script.end > first.end {
                // An application may run another script than the front controller that stands before it.
                found(&joined(alone, first.start, first.end));
            }
            last = script;
        }
        found(&joined(path, first.start, first.end));
        // A greedy server takes all up to the last script for one script.
        found(&joined(path, first.start, last.end));
    }
    directory(path).into_iter().for_each(found);
}

/// The path without the script that it names first, if it has one: `/login` for `/index.php/login`.
pub(crate) fn entered(path: &str) -> Option<String> {
    let mut segments = segments(path).filter(|segment| segment.end < path.len());
    segments.find(|segment| is_script(segment.of(path))).map(|script| joined(path, script.start, script.end))
}

/// The directory of a path that ends with an index: `/a` for `/a/index.php`.
pub(crate) fn directory(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    is_index(name.as_bytes()).then_some(if directory.is_empty() { "/" } else { directory })
}

/// Whether a path names a script because it is in a directory of scripts.
pub(crate) fn is_among_scripts(path: &str) -> bool {
    let directory = path.rsplit('/').nth(1).unwrap_or_default();
    CGI_DIRECTORIES.iter().any(|known| directory.eq_ignore_ascii_case(known))
}

/// The position of a segment in a path.
#[derive(Clone, Copy)]
struct SegmentSpan {
    start: usize,
    end: usize,
}

impl SegmentSpan {
    fn of(self, path: &str) -> &[u8] {
        &path.as_bytes()[self.start..self.end]
    }
}

fn segments(path: &str) -> impl Iterator<Item = SegmentSpan> {
    path.split('/').scan(0, |next, segment| {
        let start = *next;
        *next += segment.len() + 1;
        Some(SegmentSpan { start, end: start + segment.len() })
    })
}

/// The text before `start` and the text after `end`.
fn joined(path: &str, start: usize, end: usize) -> String {
    [&path[..start], path[end..].trim_start_matches('/')].concat()
}

fn is_script(segment: &[u8]) -> bool {
    extension(segment).is_some_and(|(_, extension)| is_of_scripts(extension))
}

/// Whether servers look for this name in a directory.
fn is_index(segment: &[u8]) -> bool {
    let is_known = |known: &[&str], text: &[u8]| known.iter().any(|known| text.eq_ignore_ascii_case(known.as_bytes()));
    begins_like_index(segment)
        && extension(segment).is_some_and(|(name, extension)| {
            is_known(&INDEX_NAMES, name) && (is_of_scripts(extension) || is_known(&PAGES, extension))
        })
}

/// A name and its extension; `None` when one of them is empty.
fn extension(segment: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = memchr::memrchr(b'.', segment)?;
    let (name, extension) = (&segment[..dot], &segment[dot + 1..]);
    (!name.is_empty() && !extension.is_empty()).then_some((name, extension))
}

fn is_of_scripts(extension: &[u8]) -> bool {
    // `php5` and `php82` are `php`.
    let letters = extension.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
    let bare = &extension[..letters];
    (2..=6).contains(&letters) && EXTENSIONS.iter().any(|known| bare.eq_ignore_ascii_case(known.as_bytes()))
}

// Parts of a path that servers on Windows drop: name endings that the file system ignores, and sessions of ASP.NET.

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

    #[track_caller]
    fn check(path: &str, expected: &[&str]) {
        let mut found: Vec<String> = Vec::new();
        readings(path, |reading| found.push(reading.to_owned()));
        assert_eq!(is_in(path), !expected.is_empty(), "{path}");
        found.sort();
        found.dedup();
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn a_script_is_run_with_whatever_follows_it() {
        check("/wp-login.php/x", &["/wp-login.php", "/x"]);
        check("/a/login.cgi/x/y", &["/a/login.cgi", "/a/x/y"]);
        check("/Login.PHP7/x", &["/Login.PHP7", "/x"]);
        check("/a.php/b.php", &["/a.php", "/b.php"]);
        check("/a.php/b/c.php/d", &["/a.php", "/a.php/b/c.php", "/b/c.php", "/b/c.php/d", "/d"]);
    }

    #[test]
    fn an_index_answers_for_its_directory() {
        check("/index.php", &["/"]);
        check("/account/Index.html", &["/account"]);
        check("/account/default.aspx", &["/account"]);
        check("/account/index.php/x", &["/account", "/account/index.php", "/account/x"]);
    }

    #[test]
    fn other_paths_have_one_reading() {
        for path in
            ["/", "/login", "/wp-login.php", "/static/a.css", "/v1.2/x", "/.php/x", "/index.", "/index.js", "/php/x"]
        {
            check(path, &[]);
        }
    }

    #[test]
    fn a_script_is_removed_from_a_pattern() {
        assert_eq!(entered("/index.php/login").as_deref(), Some("/login"));
        assert_eq!(entered("/login.php"), None);
        assert_eq!(directory("/a/index.php"), Some("/a"));
        assert_eq!(directory("/a/login.php"), None);
        assert!(is_among_scripts("/CGI-BIN/login") && !is_among_scripts("/bin/login"));
    }
}
