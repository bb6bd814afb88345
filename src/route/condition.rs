//! The conditions of a `match`. All of them must hold.

use std::fmt;

use super::host::HostPattern;
use super::method::InvalidMethod;
use super::method::MethodSet;
use super::path_regex::PathRegex;
use super::pattern::Case;
use super::pattern::InvalidPathPattern;
use super::pattern::PathPattern;
use super::readings::Certainty;
use super::readings::RequestReadings;
use super::readings::of_path;
use super::readings::of_query;
use super::readings::of_values;
use crate::glob::Glob;
use crate::head::FieldName;
use crate::key::Captures;
use crate::list::ListId;
use crate::request::RequestHead;
use crate::request::header::header_values;
use crate::request::query::cookie_values;

/// What a request must be like to take a route. `None` and empty lists match every request.
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
    pub fn capture<'a>(&'a self, head: &'a RequestHead<'_>, captures: &mut Captures<'a>) {
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
    pub fn describe(&self, head: &RequestHead<'_>) -> String {
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
    #[error("`{0}` is no match, write a path or methods and a path, such as `POST /login`")]
    Short(String),
    #[error(transparent)]
    Method(#[from] InvalidMethod),
    #[error(transparent)]
    Path(#[from] InvalidPathPattern),
}

#[cfg(test)]
mod tests;
