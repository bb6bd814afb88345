use super::*;

#[track_caller]
fn check(pattern: &str, path: &str, expected: bool) {
    let pattern = PathPattern::new(pattern, Case::Ignored).unwrap();
    assert_eq!(pattern.matches(&CanonicalPath::new(path)), expected, "{path} under {pattern}");
}

#[track_caller]
fn refused(pattern: &str, expected: &InvalidPathPattern) {
    assert_eq!(PathPattern::new(pattern, Case::Ignored).as_ref(), Err(expected), "{pattern}");
}

#[track_caller]
fn captured(pattern: &str, case: Case, path: &str, expected: &[(&str, &str)]) {
    let pattern = PathPattern::new(pattern, case).unwrap();
    let path = CanonicalPath::new(path);
    assert!(pattern.matches(&path));
    let mut captures = Captures::new();
    pattern.capture(&path, &mut captures);
    let captures: Vec<_> = captures.iter().map(|(name, value)| (*name, &**value)).collect();
    assert_eq!(captures, expected);
}

#[test]
fn an_exact_path_matches_itself_in_every_spelling_and_nothing_below() {
    check("/login", "/login", true);
    check("/login", "/Login/", true);
    check("/login", "//log%69n", true);
    check("/login", "/login/x", false);
    check("/login", "/loginx", false);
    check("/", "/", true);
    check("/", "/x", false);
}

#[test]
fn patterns_are_brought_to_the_form_of_requests() {
    check("/Login/", "/login", true);
    check("//a/./b/../c", "/a/c", true);
    check("/caf%C3%A9", "/café", true);
    check("/a b", "/a%20b", true);
}

#[test]
fn a_prefix_holds_its_own_path_and_whole_segments_only() {
    check("/admin/*", "/admin", true);
    check("/admin/*", "/admin/", true);
    check("/admin/*", "/admin/users/1", true);
    check("/admin/*", "/administrator", false);
    check("/admin/*", "/", false);
    check("/*", "/", true);
    check("/*", "/anything/at/all", true);
}

#[test]
fn a_name_captures_one_segment() {
    check("/users/{id}", "/users/7", true);
    check("/users/{id}", "/users", false);
    check("/users/{id}", "/users/7/posts", false);
    check("/{tenant}/login", "/acme/login", true);
    check("/{any}", "/", false);
    check("/users/{id}/*", "/users/7", true);
    check("/users/{id}/*", "/users/7/posts/1", true);
    captured("/users/{id}/posts/{post}", Case::Ignored, "/Users/Seven/posts/1", &[("id", "seven"), ("post", "1")]);
    captured("/Users/{Id}", Case::Sensitive, "/Users/Seven", &[("Id", "Seven")]);
}

#[test]
fn letters_count_when_asked_to() {
    let pattern = PathPattern::new("/Login/*", Case::Sensitive).unwrap();
    assert!(pattern.matches(&CanonicalPath::new("/Login/x")));
    assert!(!pattern.matches(&CanonicalPath::new("/login/x")));
}

#[test]
fn a_pattern_may_name_the_script_that_requests_leave_out() {
    check("/index.php/login", "/login", true);
    check("/index.php/login", "/index.php/login", true);
    check("/index.php/users/*", "/users/7", true);
    check("/index.php", "/", true);
    check("/account/index.php", "/account/", true);
    check("/account/index.html", "/account", true);
    check("/index.php/*", "/login", false);
    check("/wp-login.php", "/", false);
    captured("/index.php/users/{id}", Case::Ignored, "/users/7", &[("id", "7")]);
    captured("/index.php/users/{id}", Case::Ignored, "/index.php/users/7", &[("id", "7")]);
}

#[test]
fn a_file_among_scripts_is_one() {
    check("/cgi-bin/login", "/cgi-bin/login/x/y", true);
    check("/cgi-bin/login", "/cgi-bin/logins", false);
    check("/bin/login", "/bin/login/x", false);
}

#[test]
fn malformed_patterns_say_what_is_wrong() {
    refused("login", &InvalidPathPattern::Relative("login".into()));
    refused("", &InvalidPathPattern::Relative(String::new()));
    refused("/a*b", &InvalidPathPattern::Star("/a*b".into()));
    refused("/*/b", &InvalidPathPattern::Star("/*/b".into()));
    refused("/a/**", &InvalidPathPattern::Star("/a/**".into()));
    refused("/a*", &InvalidPathPattern::Star("/a*".into()));
    refused("/{id", &InvalidPathPattern::Brace("/{id".into()));
    refused("/id}", &InvalidPathPattern::Brace("/id}".into()));
    refused("/x-{id}", &InvalidPathPattern::Brace("/x-{id}".into()));
    refused("/{}", &InvalidPathPattern::Name(String::new()));
    refused("/{a b}", &InvalidPathPattern::Name("a b".into()));
    refused("/{a}/{a}", &InvalidPathPattern::Repeated("a".into()));
    refused("/login?next=1", &InvalidPathPattern::NotOnlyAPath("/login?next=1".into()));
}
