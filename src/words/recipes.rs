//! The recipes: a whole configuration for each kind of application. The binary carries the files of `config/`.

use std::borrow::Cow;
use std::str::FromStr;

/// A configuration for one kind of application.
#[derive(Debug)]
pub struct Recipe {
    pub name: &'static str,
    /// The kind of application, in a few words.
    pub purpose: &'static str,
    text: &'static str,
    /// The places of its login that tell the application: paths in lower case, in which `*` is any one segment. They end with a
    /// slash where requests do.
    signs: &'static [&'static str],
    /// Parts of a query that tell a login of the application, in lower case.
    query_signs: &'static [&'static str],
}

/// Every recipe, in the order in which people look for them.
pub static RECIPES: [Recipe; 15] = [
    Recipe {
        name: "login",
        purpose: "a form that redirects after a login; the fullest set of limits",
        text: include_str!("../../config/login.yaml"),
        signs: &[],
        query_signs: &[],
    },
    Recipe {
        name: "wordpress",
        purpose: "WordPress, with XML-RPC and the REST API",
        text: include_str!("../../config/login-wordpress.yaml"),
        signs: &["/wp-login.php"],
        query_signs: &[],
    },
    Recipe {
        name: "dokuwiki",
        purpose: "DokuWiki, where every page is a login",
        text: include_str!("../../config/login-dokuwiki.yaml"),
        signs: &["/doku.php"],
        query_signs: &[],
    },
    Recipe {
        name: "mediawiki",
        purpose: "MediaWiki, with its API",
        text: include_str!("../../config/login-mediawiki.yaml"),
        signs: &["/index.php/special:userlogin"],
        query_signs: &["title=special:userlogin"],
    },
    Recipe {
        name: "roundcube",
        purpose: "Roundcube webmail",
        text: include_str!("../../config/login-roundcube.yaml"),
        signs: &[],
        query_signs: &["_task=login"],
    },
    Recipe {
        name: "phpmyadmin",
        purpose: "phpMyAdmin",
        text: include_str!("../../config/login-phpmyadmin.yaml"),
        signs: &["/phpmyadmin/index.php"],
        query_signs: &[],
    },
    Recipe {
        name: "calibre-web",
        purpose: "calibre-web, or another application with Flask-Login",
        text: include_str!("../../config/login-calibre-web.yaml"),
        signs: &[],
        query_signs: &[],
    },
    Recipe {
        name: "keycloak",
        purpose: "Keycloak, or another OpenID provider",
        text: include_str!("../../config/login-keycloak.yaml"),
        signs: &["/realms/*/login-actions/authenticate", "/realms/*/protocol/openid-connect/token"],
        query_signs: &[],
    },
    Recipe {
        name: "django",
        purpose: "Django's admin, or its login view",
        text: include_str!("../../config/login-django.yaml"),
        signs: &["/admin/login/", "/accounts/login/"],
        query_signs: &[],
    },
    Recipe {
        name: "express",
        purpose: "a form that redirects after success and after failure, as Express with Passport does",
        text: include_str!("../../config/login-express.yaml"),
        signs: &[],
        query_signs: &[],
    },
    Recipe {
        name: "page",
        purpose: "a form that always answers 200 and says in the page what happened",
        text: include_str!("../../config/login-page.yaml"),
        signs: &[],
        query_signs: &[],
    },
    Recipe {
        name: "json",
        purpose: "a login that answers JSON such as {\"ok\": false}",
        text: include_str!("../../config/login-json.yaml"),
        signs: &[],
        query_signs: &[],
    },
    Recipe {
        name: "basic",
        purpose: "a password with HTTP Basic",
        text: include_str!("../../config/login-basic.yaml"),
        signs: &[],
        query_signs: &[],
    },
    Recipe {
        name: "second-factor",
        purpose: "a code after the password",
        text: include_str!("../../config/second-factor.yaml"),
        signs: &[],
        query_signs: &[],
    },
    Recipe {
        name: "api",
        purpose: "an API with bearer tokens",
        text: include_str!("../../config/api.yaml"),
        signs: &[],
        query_signs: &[],
    },
];

/// The upstream of every recipe.
const UPSTREAM: &str = "http://127.0.0.1:8000";

/// The upstream of the recipe for an API: two servers.
const SERVERS: &str = "[http://127.0.0.1:8000, http://127.0.0.1:8001]";

/// The lines before the routes end with this one.
const ROUTES: &str = "\nroutes:\n";

impl Recipe {
    /// The recipe of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        RECIPES.iter().find(|recipe| recipe.name == name)
    }

    /// The whole file: in front of the application at `upstream`, with every path below `prefix`.
    pub fn file(&self, upstream: Option<&str>, prefix: &PathPrefix) -> String {
        let text = below(prefix, self.text);
        let text = match upstream {
            Some(upstream) => in_front_of(upstream, &text),
            None => text.into_owned(),
        };
        if prefix.is_root() {
            return text;
        }
        let Self { name, .. } = self;
        format!("# portcullis recipe {name} --prefix {prefix}: comments name paths without the prefix.\n#\n{text}")
    }

    /// The routes alone, for an application that has this login: as [`Recipe::login_at`] found it.
    pub fn routes(&self, login: &LoginPlace<'_>) -> String {
        let text = below(&login.path_prefix(), self.text);
        let routes = text.split_once(ROUTES).map_or("", |(_, routes)| routes);
        // The recipe for Django is for its admin.
        let [admin, view] = ["/admin/login", "/accounts/login"].map(|path| format!("{}{path}", login.prefix));
        if login.sign == "/accounts/login/" { routes.replace(&admin, &view) } else { routes.to_owned() }
    }

    /// The login of this application that a POST with this target is for. `None`: the target does not tell.
    pub fn login_at<'t>(&self, target: &'t str) -> Option<LoginPlace<'t>> {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        for sign in self.signs {
            if let Some(prefix) = prefix_before(path, sign) {
                return Some(LoginPlace { prefix, sign });
            }
        }
        let query = query?.to_ascii_lowercase();
        let sign = self.query_signs.iter().find(|sign| query.split('&').any(|part| part == **sign))?;
        let script = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Some(LoginPlace { prefix: script, sign })
    }

    /// The command that prints the recipe for a login at this path, whether a slash ends it or not. `None`: the path does not
    /// tell the application.
    pub fn command_for(path: &str) -> Option<String> {
        let with_slash = format!("{}/", path.trim_end_matches('/'));
        let (recipe, place) = Self::of_login_path(path).or_else(|| Self::of_login_path(&with_slash))?;
        let prefix = if place.prefix.is_empty() { String::new() } else { format!(" --prefix {}", place.prefix) };
        place.is_writable().then(|| format!("portcullis recipe {}{prefix}", recipe.name))
    }

    /// The paths of all logins that tell their application. `*` is any one segment.
    pub fn login_paths() -> impl Iterator<Item = &'static str> {
        RECIPES.iter().flat_map(|recipe| recipe.signs).copied()
    }

    /// The recipe whose login a POST with this path is for, wherever it stands. `None`: the path does not tell.
    pub fn of_login_path(path: &str) -> Option<(&'static Self, LoginPlace<'_>)> {
        let path = path.split('?').next().unwrap_or(path);
        RECIPES.iter().find_map(|recipe| Some((recipe, recipe.login_at(path)?)))
    }
}

/// Where the login of an application stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LoginPlace<'t> {
    /// The path before the login: `/blog` of `/blog/wp-login.php`, or nothing.
    pub prefix: &'t str,
    /// What tells the application.
    pub sign: &'static str,
}

impl LoginPlace<'_> {
    /// Nothing where no path of a configuration can have this prefix.
    fn path_prefix(&self) -> PathPrefix {
        self.prefix.parse().unwrap_or_default()
    }

    /// Whether the paths of a configuration can have this prefix.
    pub fn is_writable(&self) -> bool {
        self.prefix.is_empty() || self.prefix.parse::<PathPrefix>().is_ok()
    }
}

/// What stands before the last segments of `path`, which are those of `sign`. A sign that ends with a slash wants one.
fn prefix_before<'p>(path: &'p str, sign: &str) -> Option<&'p str> {
    let (trimmed, wanted) = match sign.strip_suffix('/') {
        Some(wanted) => (path.strip_suffix('/')?, wanted),
        None => (path, sign),
    };
    let mut rest = trimmed;
    for segment in wanted.rsplit('/').filter(|segment| !segment.is_empty()) {
        let (before, last) = rest.rsplit_once('/')?;
        if last.is_empty() || segment != "*" && !last.eq_ignore_ascii_case(segment) {
            return None;
        }
        rest = before;
    }
    Some(rest)
}

/// What stands before the segments that two paths end with alike, where nothing does before those of one of them: for
/// `/wp-login.php` and `/blog/wp-login.php` nothing and `/blog`. `None`: they are equal, or end otherwise.
pub fn prefixes<'p>(one: &'p str, other: &'p str) -> Option<(&'p str, &'p str)> {
    let [mut one, mut other] = [one, other].map(|path| path.trim_end_matches('/'));
    if one.is_empty() || other.is_empty() {
        return None;
    }
    while let (Some((before, last)), Some((other_before, other_last))) = (one.rsplit_once('/'), other.rsplit_once('/'))
    {
        if !last.eq_ignore_ascii_case(other_last) {
            return None;
        }
        (one, other) = (before, other_before);
    }
    (one.is_empty() != other.is_empty()).then_some((one, other))
}

// Moving a recipe below a prefix. Its comments are a part of it, so the text is changed and not written anew.

/// The path below which an application stands: `/blog`, or nothing for one that stands at the root.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PathPrefix(Box<str>);

/// Why this is no prefix.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidPrefix {
    #[error("it begins with a slash: `/blog`")]
    NoSlash,
    #[error("a segment of it is empty, `.` or `..`")]
    Segment,
    #[error("it consists of letters, digits and `-`, `_`, `.`, `~`, in segments: `/intranet/blog`")]
    Letter,
}

impl FromStr for PathPrefix {
    type Err = InvalidPrefix;

    /// A slash at the end means nothing.
    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        let segments = text.strip_prefix('/').ok_or(InvalidPrefix::NoSlash)?;
        if segments.is_empty() {
            return Ok(Self::default());
        }
        let segments = segments.strip_suffix('/').unwrap_or(segments);
        if segments.split('/').any(|segment| ["", ".", ".."].contains(&segment)) {
            return Err(InvalidPrefix::Segment);
        }
        if !segments.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte)) {
            return Err(InvalidPrefix::Letter);
        }
        Ok(Self(format!("/{segments}").into()))
    }
}

impl PathPrefix {
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys of a recipe whose values are paths.
const PATH_KEYS: [&str; 4] = ["match: ", "path: ", "location: ", "path_regex: "];

fn below<'t>(prefix: &PathPrefix, text: &'t str) -> Cow<'t, str> {
    if prefix.is_root() {
        return text.into();
    }
    let mut moved = String::with_capacity(text.len() + 1024);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('#') {
            moved.push_str(line);
        } else {
            move_line(prefix, line, &mut moved);
        }
    }
    moved.into()
}

/// Adds the prefix to each path of a line.
fn move_line(prefix: &PathPrefix, line: &str, moved: &mut String) {
    let mut rest = line;
    while let Some((key, at)) = first_path(rest) {
        moved.push_str(&rest[..at]);
        // A dot is itself in a regular expression behind a backslash, which YAML wants twice between quotation marks.
        let prefix = if key == "path_regex: " { prefix.0.replace('.', r"\\.") } else { prefix.0.to_string() };
        moved.push_str(&prefix);
        moved.push('/');
        rest = &rest[at + 1..];
    }
    moved.push_str(rest);
}

/// The first key of a line whose value has a path, and the position of its first slash.
fn first_path(line: &str) -> Option<(&'static str, usize)> {
    let found = PATH_KEYS.iter().filter_map(|key| {
        let value = line.find(key)? + key.len();
        let slash = value + line[value..].find('/')?;
        // Methods stand before the path of a short match, and a quotation mark and an anchor before others.
        let is_path = line[value..slash].bytes().all(|byte| byte.is_ascii_uppercase() || b" ,\"^".contains(&byte));
        is_path.then_some((*key, slash))
    });
    found.min_by_key(|(_, slash)| *slash)
}

fn in_front_of(upstream: &str, text: &str) -> String {
    let quoted = format!("\"{upstream}\"");
    text.replace(SERVERS, &format!("[{quoted}]"))
        .replace(UPSTREAM, if upstream.contains('[') { &quoted } else { upstream })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_moved_where_a_rule_has_it() {
        let prefix: PathPrefix = "/my.blog/".parse().unwrap();
        for (line, expected) in [
            ("    match: POST /login", "    match: POST /my.blog/login"),
            ("match: GET,POST /*", "match: GET,POST /my.blog/*"),
            ("match: /admin/*", "match: /my.blog/admin/*"),
            ("match: {path: /*, header: {a: \"*\"}}", "match: {path: /my.blog/*, header: {a: \"*\"}}"),
            (r#"match: {path_regex: "^/a\\.php"}"#, r#"match: {path_regex: "^/my\\.blog/a\\.php"}"#),
            ("{status: 302, header: {location: \"/a*\"}}", "{status: 302, header: {location: \"/my.blog/a*\"}}"),
            ("# match: /login", "# match: /login"),
            ("upstream: http://127.0.0.1:8000", "upstream: http://127.0.0.1:8000"),
            ("file: lists/a.txt", "file: lists/a.txt"),
        ] {
            assert_eq!(below(&prefix, line), expected);
        }
        assert_eq!(below(&PathPrefix::default(), "match: /login"), "match: /login");
    }

    #[test]
    fn a_prefix_is_a_path_that_needs_no_escape() {
        assert_eq!("/".parse(), Ok(PathPrefix::default()));
        assert_eq!("/a/b-c_d.e~1/".parse::<PathPrefix>().unwrap().to_string(), "/a/b-c_d.e~1");
        for (text, reason) in [
            ("", InvalidPrefix::NoSlash),
            ("blog", InvalidPrefix::NoSlash),
            ("//", InvalidPrefix::Segment),
            ("/a//b", InvalidPrefix::Segment),
            ("/a/../b", InvalidPrefix::Segment),
            ("/a b", InvalidPrefix::Letter),
            ("/{id}", InvalidPrefix::Letter),
            ("/a*", InvalidPrefix::Letter),
            ("/a?b", InvalidPrefix::Letter),
        ] {
            assert_eq!(text.parse::<PathPrefix>(), Err(reason), "{text}");
        }
    }

    #[test]
    fn a_login_tells_its_application_and_what_it_is_below() {
        let found = |target: &str| {
            let (recipe, place) = RECIPES.iter().find_map(|recipe| Some((recipe, recipe.login_at(target)?)))?;
            Some((recipe.name, place.prefix.to_owned()))
        };
        for (target, name, prefix) in [
            ("/wp-login.php", "wordpress", ""),
            ("/a/blog/WP-login.php?x=/wp-login.php", "wordpress", "/a/blog"),
            ("/admin/login/?next=/admin/", "django", ""),
            ("/site/accounts/login/", "django", "/site"),
            ("/auth/realms/main/login-actions/authenticate?code=1", "keycloak", "/auth"),
            ("/w/index.php?title=Special:UserLogin&x=1", "mediawiki", "/w"),
            ("/mail/?_task=login", "roundcube", "/mail"),
        ] {
            assert_eq!(found(target), Some((name, prefix.to_owned())), "{target}");
        }
        for target in ["/login", "/admin/login", "/xwp-login.php", "/realms//login-actions/authenticate", "/", "*"] {
            assert_eq!(found(target), None, "{target}");
        }
    }

    #[test]
    fn paths_that_end_alike_differ_in_their_prefix() {
        for (one, other, expected) in [
            ("/wp-login.php", "/blog/WP-login.php", Some(("", "/blog"))),
            ("/a/b/login", "/login/", Some(("/a/b", ""))),
            ("/login", "/login", None),
            ("/a/login", "/b/login", None),
            ("/login", "/xlogin", None),
            ("/", "/login", None),
        ] {
            assert_eq!(prefixes(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn every_recipe_that_a_login_tells_ends_with_its_routes() {
        for recipe in RECIPES.iter().filter(|recipe| recipe.signs.len() + recipe.query_signs.len() > 0) {
            let (_, routes) = recipe.text.split_once(ROUTES).unwrap();
            assert!(routes.lines().all(|line| line.is_empty() || line.starts_with("  ")), "{}", recipe.name);
        }
    }

    #[test]
    fn the_login_view_of_django_takes_the_place_of_its_admin() {
        let django = Recipe::named("django").unwrap();
        let place = django.login_at("/a/accounts/login/").unwrap();
        assert!(django.routes(&place).contains("match: POST /a/accounts/login\n"), "{}", django.routes(&place));
    }
}
