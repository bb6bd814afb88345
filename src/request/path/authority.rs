//! A path that begins with two slashes: an application that parses it as a reference to a URL takes what follows for a host
//! and only the rest for the path (RFC 3986, section 4.2). PHP's `parse_url` reads `//x/login` so.

/// Whether the path would have an authority.
pub(super) fn begins(path: &str) -> bool {
    path.len() - path.trim_start_matches(SLASHES).len() >= 2
}

/// The path behind the authority, as different parsers find it: to those that follow the URL Standard, as `new URL` in
/// JavaScript does, `\` is a slash too. Empty where there is no authority.
pub(super) fn paths_behind(path: &str) -> Vec<String> {
    if !begins(path) {
        return Vec::new();
    }
    // The URL Standard skips further slashes.
    let authority = path.trim_start_matches(SLASHES);
    let mut paths: Vec<String> = [&['/', '?', '#'][..], &['/', '\\', '?', '#']]
        .into_iter()
        .map(|ends| match authority.find(ends) {
            Some(end) if authority[end..].starts_with(SLASHES) => format!("/{}", &authority[end + 1..]),
            _ => "/".to_owned(),
        })
        .collect();
    paths.dedup();
    paths
}

const SLASHES: [char; 2] = ['/', '\\'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_begins_behind_the_host() {
        for (path, expected) in [
            ("//x/login", &["/login"][..]),
            ("//u@x:80/login/", &["/login/"]),
            ("//[::1]/login", &["/login"]),
            ("/\\x/login", &["/login"]),
            ("\\\\///x/login", &["/login"]),
            ("//x\\y/login", &["/login", "/y/login"]),
            ("//x//y/login", &["//y/login"]),
            ("//x", &["/"]),
            ("//x?/login", &["/"]),
            ("//", &["/"]),
            ("/x//login", &[]),
            ("/", &[]),
            ("", &[]),
        ] {
            assert_eq!(paths_behind(path), expected, "{path}");
        }
    }
}
