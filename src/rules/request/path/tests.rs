use std::borrow::Cow;

use proptest::prelude::*;

use super::{CanonicalPath, RequestPath};
use crate::rules::request::path::{decode, folded, resolve};
use crate::rules::request::text::is_blank;
use crate::rules::request::urlencoded;
use crate::rules::request::urlencoded::Escapes;

#[track_caller]
fn check(sent: &str, expected: &str) {
    assert_eq!(CanonicalPath::new(sent).folded(), expected, "{sent:?}");
}

#[test]
fn every_spelling_of_a_path_is_one_path() {
    for (sent, expected) in SPELLINGS {
        check(sent, expected);
    }
}

#[test]
fn a_path_that_applications_resolve_differently_has_a_reading_for_each() {
    let has = |sent: &str, reading: &str| {
        let path = RequestPath::new(sent);
        assert!(path.readings().iter().any(|other| other.folded() == reading), "{sent:?}: {:?}", path.readings());
    };
    has("/x\\y/../login", "/login");
    has("/x%5Cy/../login", "/login");
    has("/x%252fy/../LOGIN/", "/login");
    has("/x%2fy/../login", "/login");
    has("/login/;x/..", "/login");
    has("/a//../login", "/a/login");
    has("/a/;x/../login", "/a/login");
    has("/admin/..\\x", "/admin/..\\x");
    has("/users/a%2Fb/posts", "/users/a%2fb/posts");
    has("/users/;a/posts", "/users/;a/posts");
    has("/login/../x", "/login/../x");
    has("/x%00/../login", "/x");
    has("/x%3f/../login", "/x");
    for plain in ["/a%20b/%C3%A9", "/a;b=1/c;d", "/a//b/", "/%6cogin", "/%2525login", "/Dr. No"] {
        assert!(RequestPath::new(plain).readings().is_empty(), "{plain}: {:?}", RequestPath::new(plain).readings());
    }
}

#[test]
fn a_path_that_may_be_parsed_as_a_url_has_a_reading_behind_the_host() {
    let has = |sent: &str, reading: &str| {
        let path = RequestPath::new(sent);
        assert!(path.readings().iter().any(|other| other.folded() == reading), "{sent:?}: {:?}", path.readings());
    };
    for sent in [
        "//x/login",
        "//x:80/LOGIN/",
        "//x@y/login",
        "//[::1]/%6cogin",
        "//x;a/login",
        "/\\x/login",
        "/\\/x/login",
        "///x/login",
        "/%2fx/login",
        "/%5Cx/login",
        "/%252f/x/login",
        "//x//y/login",
        "//x/a/../login",
        "//x/index.php/login",
        "//x/login%3fa",
        "//x\\y/../login",
    ] {
        has(sent, "/login");
    }
    has("//x", "/");
    has("//cdn/app.js", "/app.js");
    assert_eq!(CanonicalPath::new("//x/login").folded(), "/x/login");
}

#[test]
fn what_some_servers_drop_is_dropped_in_a_reading() {
    let has = |sent: &str, reading: &str| {
        let path = RequestPath::new(sent);
        let all = std::iter::once(path.canonical()).chain(path.readings());
        assert!(all.clone().any(|other| other.folded() == reading), "{sent:?}: {:?}", all.collect::<Vec<_>>());
    };
    has("/login%00.js", "/login");
    has("/login%00.js", "/login\0.js");
    has("/login%00/x", "/login");
    has("/login%2500.js", "/login");
    has("/login%3fx", "/login");
    has("/login%23/x", "/login");
    has("/login.", "/login");
    has("/login.", "/login.");
    has("/login.%20", "/login");
    has("/admin./x", "/admin/x");
    has("/admin%20/x", "/admin/x");
    has("/login.asp::$DATA", "/login.asp");
    has("/login%", "/login");
    has("/login%2", "/login");
    has("/login.php%zz.js", "/login.php");
    has("/(S(1))/login", "/login");
    has("/%28S(1))/login", "/login");
}

#[test]
fn a_script_in_any_spelling_is_a_reading() {
    let has = |sent: &str, reading: &str| {
        let path = RequestPath::new(sent);
        assert!(path.readings().iter().any(|other| other.folded() == reading), "{sent:?}: {:?}", path.readings());
    };
    has("/wp-login.php/x", "/wp-login.php");
    has("/wp-login.php%2fx.php", "/wp-login.php");
    has("/wp-login.php/..;/x", "/wp-login.php");
    has("/WP-login.PHP;a/x", "/wp-login.php");
    has("/wp-login.php%20/x", "/wp-login.php");
    has("/wp-login.php%00/x.php", "/x.php");
    has("/x/..%2findex.php/login", "/login");
    has("/index.php/wp-login.php/a", "/wp-login.php");
    has("/index.php/wp-login.php;a/b", "/wp-login.php");
    has("/index.php", "/");
    assert!(RequestPath::new("/wp-login.php").readings().is_empty());
}

#[test]
fn a_path_of_many_readings_may_be_any_and_takes_no_longer() {
    let worst = [
        "/a.php".repeat(10_000),
        "/x\\y;a//../%2f..%252f%00%3f.".repeat(2_000),
        "/..%2f".repeat(10_000),
        "/%2525".repeat(10_000),
        ".a".repeat(30_000),
        "/(S(".repeat(10_000),
        "/(S()A()".repeat(8_000),
        "%".repeat(60_000),
        "/a.php/%2f.%00;\\".repeat(300),
        "//a".repeat(20_000),
        "/\\a".repeat(20_000),
    ];
    for path in worst {
        let path = format!("/{path}");
        let read = RequestPath::new(&path);
        let kept: usize = read.readings().iter().map(|reading| reading.cased().len().max(512)).sum();
        assert!(kept <= 32 << 10, "{kept} bytes are kept of {}", &path[..20]);
    }
    assert!(RequestPath::new(&"/a.php".repeat(1_000)).may_be_any());
    assert!(RequestPath::new(&"/x\\y;a//../%2f..%252f%00%3f.".repeat(300)).may_be_any());
    assert!(!RequestPath::new(&"/a%20b".repeat(10_000)).may_be_any());
    assert!(!RequestPath::new(&format!("/to/{}", "https:%2F%2Fexample.com%2Fa%2Fb".repeat(100))).may_be_any());
}

#[test]
fn letters_keep_their_case_for_comparisons_with_case() {
    assert_eq!(CanonicalPath::new("/Login/").cased(), "/Login");
    assert_eq!(CanonicalPath::new("/Login").cased(), "/Login");
    assert_eq!(CanonicalPath::new("/%4cogin").cased(), "/Login");
}

#[test]
fn a_canonical_path_is_borrowed() {
    for path in ["/", "/login", "/.well-known/acme", "/a.b/..c/...d", "/v1/users/42", "/a+b~c!&'()*,=:@-_"] {
        assert!(
            matches!(CanonicalPath::new(path), CanonicalPath { cased: Cow::Borrowed(_), folded: None, .. }),
            "{path:?}"
        );
    }
    assert!(matches!(CanonicalPath::new("/Login"), CanonicalPath { cased: Cow::Borrowed(_), folded: Some(_), .. }));
}

#[test]
fn a_path_still_changing_after_three_rounds_is_compared_as_it_is_then() {
    check("/%25252525login", "/%25login");
    check("/%25252541", "/%41");
}

proptest! {
    #[test]
    fn a_canonical_path_is_its_own_canonical_path(path in pieces()) {
        let once = CanonicalPath::new(&path);
        let decoded = |path: &str| urlencoded::decode(path.as_bytes(), Escapes { plus: false, code_units: true }).is_none();
        if decoded(once.cased()) {
            let cased = CanonicalPath::new(once.cased());
            prop_assert_eq!(cased.cased(), once.cased());
            prop_assert_eq!(cased.folded(), once.folded());
            let folded = CanonicalPath::new(once.folded());
            prop_assert_eq!(folded.cased(), once.folded());
        }
    }

    #[test]
    fn a_canonical_path_has_no_other_spelling(path in pieces()) {
        let canonical = CanonicalPath::new(&path);
        let cased = canonical.cased();
        prop_assert!(cased.starts_with('/'));
        prop_assert!(cased == "/" || !cased.ends_with('/'));
        prop_assert!(!cased.contains("//") && !cased.contains('\\') && !cased.contains(';'));
        prop_assert!(cased.split('/').all(|segment| segment != "." && segment != ".."));
        prop_assert!(!cased.ends_with(is_blank) && !cased.ends_with('.') && !cased.contains('\0'));
    }

    #[test]
    fn the_quick_check_agrees_with_full_resolution(path in "[/a-cA-C.%; \\\\]{0,12}") {
        let quick = CanonicalPath::new(&path);
        let cased = resolve(&decode(&path));
        prop_assert_eq!(quick.cased(), &cased);
        prop_assert_eq!(quick.folded(), folded(&cased).unwrap_or(cased.clone()));
    }

    #[test]
    fn encoding_any_letter_any_number_of_times_up_to_three_changes_nothing(rounds in proptest::collection::vec(0..4_usize, 6)) {
        let mut path = String::new();
        for (char, rounds) in "/login".chars().zip(rounds) {
            let mut text = char.to_string();
            for _ in 0..rounds {
                text = text.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).map(char::from).collect();
            }
            path.push_str(&text);
        }
        let canonical = CanonicalPath::new(&path);
        prop_assert_eq!(canonical.folded(), "/login");
    }

    #[test]
    fn any_text_is_a_path(path in ".*") {
        let read = RequestPath::new(&path);
        prop_assert_eq!(read.canonical(), &CanonicalPath::new(&path));
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/",
        "/",
        "\\",
        ".",
        "..",
        ";",
        ";x=1",
        "a",
        "login",
        "A",
        "ß",
        "İ",
        "\u{212a}",
        " ",
        "%20",
        "%00",
        "\0",
        "\t",
        "%2e",
        "%2E",
        "%2f",
        "%5c",
        "%3b",
        "%25",
        "%252e",
        "%252f",
        "%c0%af",
        "%c0%ae",
        "%e0%80%af",
        "%ff",
        "%u002f",
        "%u002e",
        "%",
        "%2",
        "u",
        "41",
        "\u{a0}",
        "\u{feff}",
        "%e2%80%8b",
        "*",
    ]);
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Paths as sent, and the one path they are.
const SPELLINGS: &[(&str, &str)] = &[
    ("", "/"),
    ("/", "/"),
    ("*", "/"),
    ("//", "/"),
    ("/.", "/"),
    ("/..", "/"),
    ("/login", "/login"),
    ("login", "/login"),
    ("/Login", "/login"),
    ("/LOGIN", "/login"),
    ("/login/", "/login"),
    ("/login//", "/login"),
    ("//login", "/login"),
    ("/a//b///c", "/a/b/c"),
    ("\\login", "/login"),
    ("/a\\b", "/a/b"),
    ("/\\/login\\", "/login"),
    ("/%6cogin", "/login"),
    ("/%6Cogin", "/login"),
    ("/%4cogin", "/login"),
    ("/%256cogin", "/login"),
    ("/%25256cogin", "/login"),
    ("/%2525256cogin", "/%6cogin"),
    ("%2flogin", "/login"),
    ("/a%2fb", "/a/b"),
    ("/a%5cb", "/a/b"),
    ("/a%252fb", "/a/b"),
    ("/%2e/login", "/login"),
    ("/a/%2e%2e/login", "/login"),
    ("/a/%252e%252e/login", "/login"),
    ("/a/.%2e/login", "/login"),
    ("/a/..%2flogin", "/login"),
    ("/a/..%5clogin", "/login"),
    ("/./login", "/login"),
    ("/login/.", "/login"),
    ("/login/./", "/login"),
    ("/a/../login", "/login"),
    ("/../login", "/login"),
    ("/../../../login", "/login"),
    ("/a/b/../../login", "/login"),
    ("/login/x/..", "/login"),
    ("/login/x/../", "/login"),
    ("/a//../login", "/login"),
    ("/login;jsessionid=1", "/login"),
    ("/login;a=b;c=d", "/login"),
    ("/;x/login", "/login"),
    ("/login/;x", "/login"),
    ("/login;/", "/login"),
    ("/a;x/b;y", "/a/b"),
    ("/a/..;/login", "/login"),
    ("/a/..;x=1/login", "/login"),
    ("/login%3bx", "/login"),
    ("/login%3B", "/login"),
    ("/login;%2fx", "/login/x"),
    ("/login ", "/login"),
    ("/login%20", "/login"),
    ("/login%20%20/", "/login"),
    ("/login/%20", "/login"),
    ("/login/%20/", "/login"),
    ("/login/%20/%20/", "/login"),
    ("/login%00", "/login"),
    ("/login%00%00", "/login"),
    ("/login%2500", "/login"),
    ("/login%09", "/login"),
    ("/login%0a", "/login"),
    ("/login%0d%0a", "/login"),
    ("/login%7f", "/login"),
    ("/login%c2%a0", "/login"),
    ("/login%e3%80%80", "/login"),
    ("/login%e2%80%8b", "/login"),
    ("/login%ef%bb%bf", "/login"),
    ("/login/.%20", "/login"),
    ("/login/x/..%20", "/login"),
    ("/login%20/.", "/login"),
    ("/login%20/x/..", "/login"),
    ("/login%20;x", "/login"),
    ("/login;x%20", "/login"),
    ("/%20", "/"),
    ("/login%c0%af", "/login"),
    ("/a%c0%afb", "/a/b"),
    ("/a/%c0%ae%c0%ae/login", "/login"),
    ("/a%c1%9cb", "/a/b"),
    ("/a%e0%80%afb", "/a/b"),
    ("/%c0%a56cogin", "/login"),
    ("/%u006cogin", "/login"),
    ("/a%u002fb", "/a/b"),
    ("/caf%c3%a9", "/café"),
    ("/CAF%C3%89", "/café"),
    ("/stra%c3%9fe", "/strasse"),
    ("/%e2%84%aa", "/k"),
    ("/%ff", "/\u{fffd}"),
    ("/a%", "/a%"),
    ("/a%2", "/a%2"),
    ("/a%zz", "/a%zz"),
    ("/a+b", "/a+b"),
    ("/a b", "/a b"),
    ("/a%20b", "/a b"),
    ("/login.", "/login"),
    ("/login..", "/login"),
    ("/login. .", "/login"),
    ("/...", "/"),
    ("/login%00.js", "/login"),
    ("/login%00/x", "/login"),
    ("/.login", "/.login"),
    ("/login%3fx", "/login?x"),
    ("/login%23x", "/login#x"),
    ("/*", "/*"),
];
