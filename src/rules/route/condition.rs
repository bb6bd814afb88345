//! The conditions of a `match`. All of them must hold.

use std::fmt;
use std::str::FromStr;

use http::Method;
use smallvec::SmallVec;

use super::path_regex::PathRegex;
use super::pattern::{Case, InvalidPathPattern, PathPattern, instead_of, of_others};
use crate::rules::key::Captures;
use crate::rules::list::ListId;
use crate::rules::request::head::header_values;
use crate::rules::request::query::cookie_values;
use crate::rules::request::{CanonicalHead, CanonicalHost};
use crate::rules::route::table::{Certainty, RequestReadings, of_path, of_query, of_values};
use crate::wire::head::FieldName;
use crate::words::glob::Glob;
use crate::words::word::Help;

/// The conditions on a request for a route. `None` and empty lists match every request.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    pub methods: Option<MethodSet>,
    pub host: Option<HostPattern>,
    pub path: Option<PathPattern>,
    pub path_regex: Option<PathRegex>,
    /// The header must be there, and one of its lines must match.
    pub headers: Vec<(FieldName, Glob)>,
    /// The parameter must be there, and one of its values must match.
    pub queries: Vec<(Box<str>, Glob)>,
    pub cookies: Vec<(Box<str>, Glob)>,
    /// One of these lists must hold the client.
    pub client: Vec<ListId>,
}

/// The first condition that holds under no reading of a request.
#[derive(Clone, Copy, Debug)]
pub enum Mismatch<'c> {
    Path(&'c PathPattern),
    PathRegex(&'c PathRegex),
    Host(&'c HostPattern),
    Method(&'c MethodSet),
    Header(&'c FieldName, &'c Glob),
    Query(&'c str, &'c Glob),
    Cookie(&'c str, &'c Glob),
    Client,
}

impl Condition {
    /// The short form: `POST /login`, `GET,POST /search`, `/admin/*`.
    pub fn short(text: &str, case: Case) -> Result<Self, InvalidMatch> {
        let mut words = text.split_whitespace();
        let (methods, path) = match (words.next(), words.next(), words.next()) {
            _ if of_others(text).is_some() => return Err(InvalidMatch::Short(text.to_owned())),
            (Some(path), None, None) if path.starts_with('/') => (None, path),
            (Some(methods), Some(path), None) if !methods.starts_with('/') => (Some(methods.parse()?), path),
            _ => return Err(InvalidMatch::Short(text.to_owned())),
        };
        Ok(Self { methods, path: Some(PathPattern::new(path, case)?), ..Self::default() })
    }

    /// How surely a request meets all conditions, or the first one that it does not meet.
    pub fn judge<'c>(&'c self, request: &mut RequestReadings<'_>) -> Result<Certainty, Mismatch<'c>> {
        let head = request.head;
        let mut least = Certainty::Surely;
        // The path first, because most routes differ in it.
        if let Some(path) = &self.path {
            least = least.min(of_path(&head.path, |reading| path.matches(reading)).ok_or(Mismatch::Path(path))?);
        }
        if let Some(regex) = &self.path_regex {
            let fits = of_path(&head.path, |reading| regex.matches(reading));
            least = least.min(fits.ok_or(Mismatch::PathRegex(regex))?);
        }
        if let Some(host) = &self.host
            && !host.matches(&head.host)
        {
            return Err(Mismatch::Host(host));
        }
        if let Some(methods) = &self.methods {
            least = least.min(request.method(methods).ok_or(Mismatch::Method(methods))?);
        }
        for (name, glob) in &self.headers {
            let fits = header_values(head.fields, name).map(|value| glob.matches(&value));
            least = least.min(of_values(fits).ok_or(Mismatch::Header(name, glob))?);
        }
        for (name, glob) in &self.queries {
            let fits = of_query(&head.query, name, |value| glob.matches(value));
            least = least.min(fits.ok_or(Mismatch::Query(name, glob))?);
        }
        for (name, glob) in &self.cookies {
            let fits = cookie_values(head.fields, name).map(|value| glob.matches(&value));
            least = least.min(of_values(fits).ok_or(Mismatch::Cookie(name, glob))?);
        }
        if !self.client.is_empty() {
            least = least.min(request.client(&self.client).ok_or(Mismatch::Client)?);
        }
        Ok(least)
    }

    /// Why no reading of a request meets this; `None`: one does.
    pub fn mismatch<'c>(&'c self, request: &mut RequestReadings<'_>) -> Option<Mismatch<'c>> {
        self.judge(request).err()
    }

    pub fn matches(&self, request: &mut RequestReadings<'_>) -> bool {
        self.mismatch(request).is_none()
    }

    /// Adds what the path of a matching request captures.
    pub fn capture<'a>(&'a self, head: &'a CanonicalHead<'_>, captures: &mut Captures<'a>) {
        for reading in std::iter::once(head.path.canonical()).chain(head.path.readings()) {
            if let Some(path) = &self.path
                && path.captures()
                && path.matches(reading)
            {
                path.capture(reading, captures);
            }
            if let Some(regex) = &self.path_regex {
                regex.capture(reading, captures);
            }
        }
    }

    /// Whether the path captures this name with case; `None`: it does not capture this name.
    pub fn captures_cased(&self, name: &str) -> Option<bool> {
        let path = self.path.iter().filter(|path| path.names().any(|known| known == name)).map(PathPattern::case);
        let regex = self.path_regex.iter().filter(|regex| regex.names().any(|known| known == name));
        let cases = path.chain(regex.map(PathRegex::case));
        cases.map(|case| case == Case::Sensitive).reduce(|one, other| one || other)
    }

    /// The names under which the path captures.
    pub fn capture_names(&self) -> impl Iterator<Item = &str> {
        let path = self.path.iter().flat_map(PathPattern::names);
        path.chain(self.path_regex.iter().flat_map(PathRegex::names))
    }
}

impl Mismatch<'_> {
    /// The mismatch in words. Where the paths differ in a suffix only it says so, because an application may serve one
    /// page under several suffixes.
    pub fn describe(&self, head: &CanonicalHead<'_>) -> String {
        match self {
            Self::Path(pattern) if pattern.differs_in_suffix(head.path.canonical()) => format!(
                "{self}; where the application takes {} for it, write that path in `match` as well",
                head.path.canonical().cased()
            ),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "the path is not {path}"),
            Self::PathRegex(regex) => write!(f, "the path does not match {regex}"),
            Self::Host(host) => write!(f, "the host is not {host}"),
            Self::Method(methods) => write!(f, "the method is not {methods}"),
            Self::Header(name, glob) => write!(f, "no header {name} is {glob}"),
            Self::Query(name, glob) => write!(f, "no query parameter {name} is {glob}"),
            Self::Cookie(name, glob) => write!(f, "no cookie {name} is {glob}"),
            Self::Client => f.write_str("the client is on none of the lists"),
        }
    }
}

/// Why a text is no short form of a `match`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidMatch {
    #[error("`{0}` is not a match")]
    Short(String),
    #[error(transparent)]
    Method(#[from] InvalidMethod),
    #[error(transparent)]
    Path(#[from] InvalidPathPattern),
}

impl Help for InvalidMatch {
    fn help(&self) -> String {
        match self {
            Self::Short(text) => instead_of(text),
            Self::Method(error) => error.help(),
            Self::Path(error) => error.help(),
        }
    }
}

// Patterns of hosts.

/// A host, or every host below a domain: `example.com`, `*.example.com`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostPattern {
    Exact(Box<str>),
    /// One or more labels before this domain. The domain itself does not match.
    Below(Box<str>),
}

impl HostPattern {
    /// Whether it is one host.
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    pub fn matches(&self, host: &CanonicalHost<'_>) -> bool {
        let host = host.as_str();
        match self {
            Self::Exact(name) => host == &**name,
            Self::Below(domain) => host
                .strip_suffix(&**domain)
                .and_then(|labels| labels.strip_suffix('.'))
                .is_some_and(|labels| !labels.is_empty()),
        }
    }

    /// Whether this matches every host that `other` matches.
    pub(super) fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(host), Self::Exact(other)) => host == other,
            (Self::Exact(_), Self::Below(_)) => false,
            (Self::Below(_), Self::Exact(other)) => self.matches(&CanonicalHost::new(other)),
            (Self::Below(domain), Self::Below(other)) => {
                let labels = other.strip_suffix(&**domain);
                labels.is_some_and(|labels| labels.is_empty() || labels.ends_with('.'))
            }
        }
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        let text = text.trim();
        let (below, name) = match text.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, text),
        };
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '#', '@', ' ', ',']) {
            return Err(InvalidHostPattern::NotAHost(text.to_owned()));
        }
        if name.contains(['*', '?']) {
            return Err(InvalidHostPattern::Star(text.to_owned()));
        }
        if has_port(name) {
            return Err(InvalidHostPattern::Port(text.to_owned()));
        }
        let name = CanonicalHost::new(name).as_str().into();
        Ok(if below { Self::Below(name) } else { Self::Exact(name) })
    }
}

/// A colon outside the brackets of an IPv6 address.
fn has_port(name: &str) -> bool {
    let after_address = name.rsplit(']').next().unwrap_or(name);
    after_address.contains(':')
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidHostPattern {
    #[error("`{0}` is not a host pattern: a `*` stands for leading labels only")]
    Star(String),
    #[error("`{0}`: hosts are compared without their port")]
    Port(String),
    #[error("`{0}` is not a host")]
    NotAHost(String),
}

impl Help for InvalidHostPattern {
    fn help(&self) -> String {
        match self {
            Self::Star(_) => "write it as in `*.example.com`".to_owned(),
            Self::Port(host) => format!("write the name alone: `{}`", without_port(host)),
            Self::NotAHost(_) => "write a name such as `example.com` or `*.example.com`".to_owned(),
        }
    }
}

fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

// Sets of methods.

/// The methods of a `match`, compared without case. A set that holds GET holds HEAD too.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MethodSet(SmallVec<[MethodName; 2]>);

/// One method of a configuration, in upper case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MethodName(Method);

impl MethodSet {
    pub fn contains(&self, method: &str) -> bool {
        // Applications handle HEAD like GET.
        let is_head = method.eq_ignore_ascii_case("HEAD");
        self.0.iter().any(|name| {
            let name = name.0.as_str();
            name.eq_ignore_ascii_case(method) || (is_head && name == "GET")
        })
    }

    /// The methods that were written, in upper case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|method| method.0.as_str())
    }

    /// Whether it holds every method that `other` holds.
    pub(super) fn includes(&self, other: &Self) -> bool {
        other.0.iter().all(|method| self.contains(method.0.as_str()))
    }

    /// The one method that was written; `None`: there are several.
    pub(super) fn only(&self) -> Option<&str> {
        let [method] = &self.0[..] else { return None };
        Some(method.0.as_str())
    }

    /// The first method, and under which name a set holds it too.
    pub(super) fn names_of_first(&self) -> impl Iterator<Item = &str> {
        let first = self.0.first().map(|method| method.0.as_str());
        first.into_iter().chain(first.filter(|name| *name == "HEAD").map(|_| "GET"))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<MethodName> for MethodSet {
    fn from_iter<I: IntoIterator<Item = MethodName>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl FromStr for MethodName {
    type Err = InvalidMethod;

    fn from_str(text: &str) -> Result<Self, InvalidMethod> {
        // A token may hold more, but no method does: who writes a star means every method, and who writes a bar several.
        let method = Method::from_bytes(text.trim().to_ascii_uppercase().as_bytes());
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || METHOD_MARKS.contains(letter);
        let method = method.ok().filter(|method| method.as_str().chars().all(is_letter));
        method.map(Self).ok_or_else(|| InvalidMethod(text.trim().to_owned()))
    }
}

impl FromStr for MethodSet {
    type Err = InvalidMethod;

    /// Methods separated by commas: `GET,POST`.
    fn from_str(text: &str) -> Result<Self, InvalidMethod> {
        text.split(',').map(str::parse).collect()
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl fmt::Display for MethodSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// What names of methods have beside letters and digits.
pub const METHOD_MARKS: &str = "-_";

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", of_method(.0))]
pub struct InvalidMethod(pub String);

impl Help for InvalidMethod {
    fn help(&self) -> String {
        if Glob::looks_like_glob(&self.0) {
            return "name each, or leave the methods out: that is any method".to_owned();
        }
        "write one such as `GET` or `POST`; several are a list: `[GET, POST]`".to_owned()
    }
}

fn of_method(text: &str) -> String {
    if Glob::looks_like_glob(text) {
        return format!("`{text}` looks like a glob, and a method is taken literally");
    }
    format!("`{text}` is not a method")
}

#[cfg(test)]
mod host_tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, host: &str, expected: bool) {
        let pattern: HostPattern = pattern.parse().unwrap();
        assert_eq!(pattern.matches(&CanonicalHost::new(host)), expected, "{host} under {pattern}");
    }

    #[test]
    fn an_exact_host_matches_in_every_spelling() {
        check("api.example.com", "api.example.com", true);
        check("API.Example.com.", "api.EXAMPLE.com:8080", true);
        check("api.example.com", "api.example.com.", true);
        check("api.example.com", "xapi.example.com", false);
        check("[::1]", "[::1]:80", true);
    }

    #[test]
    fn a_star_is_one_or_more_labels() {
        check("*.example.com", "a.example.com", true);
        check("*.example.com", "a.b.Example.com", true);
        check("*.example.com", "example.com", false);
        check("*.example.com", ".example.com", false);
        check("*.example.com", "notexample.com", false);
    }

    #[test]
    fn a_pattern_includes_what_it_matches_in_every_case() {
        for (one, other, expected) in [
            ("a.com", "A.com.", true),
            ("a.com", "b.com", false),
            ("*.a.com", "x.a.com", true),
            ("*.a.com", "a.com", false),
            ("*.a.com", "*.a.com", true),
            ("*.a.com", "*.x.a.com", true),
            ("*.a.com", "*.xa.com", false),
            ("x.a.com", "*.a.com", false),
        ] {
            let [one, other]: [HostPattern; 2] = [one, other].map(|text| text.parse().unwrap());
            assert_eq!(one.includes(&other), expected, "{other} in {one}");
        }
    }

    #[test]
    fn what_is_no_host_says_so() {
        let refused = |text: &str| text.parse::<HostPattern>().unwrap_err();
        assert_eq!(refused("a.*.com"), InvalidHostPattern::Star("a.*.com".into()));
        assert_eq!(refused("api?.com"), InvalidHostPattern::Star("api?.com".into()));
        assert_eq!(refused("*"), InvalidHostPattern::Star("*".into()));
        assert_eq!(refused("example.com:80"), InvalidHostPattern::Port("example.com:80".into()));
        assert_eq!(refused("http://example.com"), InvalidHostPattern::NotAHost("http://example.com".into()));
        assert_eq!(refused("example.com/x"), InvalidHostPattern::NotAHost("example.com/x".into()));
        assert_eq!(refused("*."), InvalidHostPattern::NotAHost("*.".into()));
        assert_eq!(refused(""), InvalidHostPattern::NotAHost(String::new()));
    }
}

#[cfg(test)]
mod method_tests {
    use super::*;

    #[track_caller]
    fn check(set: &str, method: &str, expected: bool) {
        assert_eq!(set.parse::<MethodSet>().unwrap().contains(method), expected, "{method} in {set}");
    }

    #[test]
    fn methods_are_compared_without_case() {
        check("post", "POST", true);
        check("POST, put", "Put", true);
        check("POST", "post", true);
        check("POST", "POSTS", false);
        check("PROPFIND", "propfind", true);
    }

    #[test]
    fn head_matches_where_get_does_and_not_the_other_way_round() {
        check("GET", "HEAD", true);
        check("GET", "head", true);
        check("HEAD", "GET", false);
        check("POST", "HEAD", false);
    }

    #[test]
    fn what_is_no_token_is_no_method() {
        assert_eq!("GET,,POST".parse::<MethodSet>(), Err(InvalidMethod(String::new())));
        assert_eq!("G T".parse::<MethodName>(), Err(InvalidMethod("G T".into())));
        assert_eq!("*".parse::<MethodName>(), Err(InvalidMethod("*".into())));
    }

    #[test]
    fn a_set_prints_as_it_is_written() {
        assert_eq!("get, Post".parse::<MethodSet>().unwrap().to_string(), "GET,POST");
    }
}

#[cfg(test)]
mod tests;
