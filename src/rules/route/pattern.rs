//! Path patterns: exact, prefix, and captured segments. They are compared in canonical form.

use std::borrow::Cow;
use std::fmt;

use crate::rules::key::Captures;
use crate::rules::request::CanonicalPath;
use crate::rules::request::path::script;
use crate::rules::route::HostPattern;
use crate::words::word::Help;

/// Whether case matters when letters are compared.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Case {
    #[default]
    Ignored,
    Sensitive,
}

impl Case {
    /// The path as it is compared.
    pub fn of<'p>(self, path: &'p CanonicalPath<'_>) -> &'p str {
        match self {
            Self::Ignored => path.folded(),
            Self::Sensitive => path.cased(),
        }
    }
}

/// `/login`, `/admin/*`, `/users/{id}/posts`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathPattern {
    text: Box<str>,
    pub(super) case: Case,
    pub(super) shape: Shape,
    /// The pattern without the front controller script, which a request may leave out: `/login` for `/index.php/login`.
    bare: Option<Shape>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    Exact(Box<str>),
    /// Without the `/*`: this path and all paths below it.
    Prefix(Box<str>),
    /// Compared segment by segment. More may follow where it is `open`.
    Segments {
        segments: Box<[Segment]>,
        open: bool,
    },
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Segment {
    Literal(Box<str>),
    Named(Box<str>),
}

impl PathPattern {
    pub fn new(text: &str, case: Case) -> Result<Self, InvalidPathPattern> {
        let shape = shape(text, case)?;
        let bare = without_script(text).map(|bare| self::shape(&bare, case)).transpose()?;
        Ok(Self { text: text.into(), case, shape, bare })
    }

    pub fn matches(&self, path: &CanonicalPath<'_>) -> bool {
        let path = self.case.of(path);
        self.shape.holds(path) || self.bare.as_ref().is_some_and(|bare| bare.holds(path))
    }

    /// Whether it may capture anything.
    pub fn captures(&self) -> bool {
        matches!(self.shape, Shape::Segments { .. })
    }

    /// Adds the named segments of `path`, which matches. Values are case-folded where case is ignored.
    pub fn capture<'a>(&'a self, path: &'a CanonicalPath<'_>, captures: &mut Captures<'a>) {
        let path = self.case.of(path);
        for shape in self.shapes() {
            if let Shape::Segments { segments, open } = shape
                && shape.holds(path)
            {
                pair(segments, *open, path, |name, value| captures.push((name, Cow::Borrowed(value))));
            }
        }
    }

    /// Whether a path that does not match would match with or without a suffix: `/login.json` or `/login.php` for
    /// `/login`, and `/login` for `/login.php`. The gateway cannot know which suffixes an application ignores.
    pub fn differs_in_suffix(&self, path: &CanonicalPath<'_>) -> bool {
        let stem = |path: &str| {
            let (stem, suffix) = path.rsplit_once('.')?;
            let is_one = !suffix.is_empty() && !suffix.contains('/') && !stem.is_empty() && !stem.ends_with('/');
            is_one.then(|| stem.to_owned())
        };
        let path = self.case.of(path);
        let with = match &self.shape {
            Shape::Exact(exact) => stem(exact).is_some_and(|stem| stem == path),
            Shape::Prefix(_) | Shape::Segments { .. } => false,
        };
        with || stem(path).is_some_and(|stem| self.shape.holds(&stem))
    }

    /// The forms that are compared: the path, and the path without its script if it has one.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &Shape> {
        std::iter::once(&self.shape).chain(&self.bare)
    }

    /// Whether captured values keep their case.
    pub fn case(&self) -> Case {
        self.case
    }

    /// The names of the captured segments.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let segments = match &self.shape {
            Shape::Segments { segments, .. } => &segments[..],
            Shape::Exact(_) | Shape::Prefix(_) => &[],
        };
        segments.iter().filter_map(|segment| match segment {
            Segment::Named(name) => Some(&**name),
            Segment::Literal(_) => None,
        })
    }
}

impl Shape {
    fn holds(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => path == &**exact,
            Self::Prefix(prefix) => {
                path.strip_prefix(&**prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Self::Segments { segments, open } => pair(segments, *open, path, |_, _| {}),
        }
    }
}

/// Compares a pattern and a path segment by segment. Answers whether they match.
fn pair<'a>(segments: &'a [Segment], open: bool, path: &'a str, mut named: impl FnMut(&'a str, &'a str)) -> bool {
    // The root has no segment, not an empty one.
    let mut rest = path.strip_prefix('/').filter(|rest| !rest.is_empty()).map(|rest| rest.split('/'));
    let mut next = || rest.as_mut().and_then(Iterator::next);
    for segment in segments {
        let Some(value) = next() else { return false };
        match segment {
            Segment::Literal(literal) if **literal == *value => {}
            Segment::Literal(_) => return false,
            Segment::Named(name) => named(name, value),
        }
    }
    open || next().is_none()
}

fn shape(text: &str, case: Case) -> Result<Shape, InvalidPathPattern> {
    if !text.starts_with('/') {
        return Err(InvalidPathPattern::Relative(text.to_owned()));
    }
    if text.contains(['?', '#']) {
        return Err(InvalidPathPattern::NotOnlyAPath(text.to_owned()));
    }
    let (path, open) = match text.strip_suffix("/*") {
        Some(path) => (path, true),
        None => (text, false),
    };
    if path.contains('*') {
        return Err(InvalidPathPattern::Star(text.to_owned()));
    }
    if path.contains(['{', '}']) {
        return Ok(Shape::Segments { segments: segments(text, path, case)?, open });
    }
    let canonical = CanonicalPath::new(if path.is_empty() { "/" } else { path });
    let canonical = case.of(&canonical);
    Ok(match (open, canonical) {
        (true, "/") => Shape::Prefix("".into()),
        (true, prefix) => Shape::Prefix(prefix.into()),
        // A path below a script still runs the script.
        (false, script) if script::is_among_scripts(script) => Shape::Prefix(script.into()),
        (false, exact) => Shape::Exact(exact.into()),
    })
}

/// The pattern without the script that serves the whole application, or without the index file of a directory.
fn without_script(text: &str) -> Option<String> {
    let (path, end) = text.strip_suffix("/*").map_or((text, ""), |path| (path, "/*"));
    let path = CanonicalPath::new(path);
    let bare = script::entered(path.cased());
    let bare = bare.or_else(|| script::directory(path.cased()).filter(|_| end.is_empty()).map(str::to_owned))?;
    Some(bare + end)
}

fn segments(text: &str, path: &str, case: Case) -> Result<Box<[Segment]>, InvalidPathPattern> {
    // Names keep their case. Literals are folded one by one.
    let canonical = CanonicalPath::new(path);
    let mut segments = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for part in canonical.cased().split('/').skip(1) {
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        match name {
            Some(name) if !is_name(name) => return Err(InvalidPathPattern::Name(name.to_owned())),
            Some(name) if names.contains(&name) => return Err(InvalidPathPattern::Repeated(name.to_owned())),
            Some(name) => {
                names.push(name);
                segments.push(Segment::Named(name.into()));
            }
            None if part.contains(['{', '}']) => return Err(InvalidPathPattern::Brace(text.to_owned())),
            None => {
                let literal = format!("/{part}");
                let literal = CanonicalPath::new(&literal);
                segments.push(Segment::Literal(case.of(&literal)[1..].into()));
            }
        }
    }
    Ok(segments.into())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidPathPattern {
    #[error("`{0}`: a path starts with `/`")]
    Relative(String),
    #[error("`{0}`: a path has no `?` or `#`")]
    NotOnlyAPath(String),
    #[error("`{0}`: a `*` may only be the last segment")]
    Star(String),
    #[error("`{0}`: a `{{name}}` is a whole segment")]
    Brace(String),
    #[error("`{{{0}}}` is not a name for a segment")]
    Name(String),
    #[error("`{{{0}}}` stands in the path twice")]
    Repeated(String),
}

impl Help for InvalidPathPattern {
    fn help(&self) -> String {
        match self {
            Self::Relative(url) if url.contains("://") => of_url(url),
            Self::Relative(path) => format!("write `/{}`", path.trim_start_matches("./")),
            Self::NotOnlyAPath(_) => "match parameters with `query`".to_owned(),
            Self::Star(_) => "write it as in `/admin/*`".to_owned(),
            Self::Brace(_) => "write it as in `/users/{id}`".to_owned(),
            Self::Name(_) => "use letters, digits, `_` and `-`".to_owned(),
            Self::Repeated(_) => "give one of the two another name".to_owned(),
        }
    }
}

/// The help for a whole URL where a path is expected.
fn of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    if host.is_empty() {
        return format!("write `/{path}`");
    }
    format!("write `{{host: {host}, path: /{path}}}`; a method stands there as `methods: [POST]`")
}

/// The help for a text that is no short form of a match.
pub(super) fn instead_of(text: &str) -> String {
    if text.contains("://") && !text.contains(' ') {
        return of_url(text);
    }
    of_others(text).map_or_else(
        || "write a path, or methods and a path: `/admin/*`, `POST /login` or `GET,POST /search`".to_owned(),
        |meant| format!("write `{meant}`"),
    )
}

/// The match that the condition of another program stands for: a `location` of nginx, or a rule of Traefik. `None`: it is
/// of neither. Also hosts that stand where a path is expected.
pub(super) fn of_others(text: &str) -> Option<String> {
    let text = text.trim();
    let location = text.strip_prefix("location").filter(|rest| rest.starts_with(char::is_whitespace));
    let condition = location.unwrap_or(text).trim().trim_end_matches(['{', ';']).trim();
    let (word, rest) = condition.split_once(char::is_whitespace).unwrap_or((condition, ""));
    let rest = rest.trim();
    if !rest.is_empty() && !rest.contains(char::is_whitespace) {
        match word {
            "=" => return Some(rest.to_owned()),
            "^~" => return Some(below(rest)),
            "~" | "~*" => return Some(format!("{{path_regex: '{}'}}", rest.replace('\'', "''"))),
            _ if word.contains('|') => return Some(format!("{} {rest}", word.replace('|', ","))),
            _ => {}
        }
    }
    if location.is_some() {
        return (condition.starts_with('/') && rest.is_empty()).then(|| below(condition));
    }
    if text.contains('(') {
        let conditions: Option<Vec<String>> = text.split("&&").map(of_rule).collect();
        return conditions.map(|conditions| format!("{{{}}}", conditions.join(", ")));
    }
    if SCRIPTS.iter().any(|script| text.ends_with(script)) && !text.contains(['/', ' ']) {
        return Some(format!("/{text}"));
    }
    let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
    let is_host = host.contains('.') && !host.starts_with('.') && host.parse::<HostPattern>().is_ok();
    let path = path.map(|path| format!(", path: /{path}")).unwrap_or_default();
    is_host
        .then(|| format!("{{host: {}{path}}}", if host.contains('*') { format!("'{host}'") } else { host.to_owned() }))
}

/// One condition of Traefik, as an entry of `match`.
fn of_rule(rule: &str) -> Option<String> {
    let (name, value) = rule.trim().split_once('(')?;
    let value = value.strip_suffix(')')?.trim_matches(['`', '"', '\'']);
    if value.is_empty() || value.contains(['`', '"', ' ', ',', '(', '{']) {
        return None;
    }
    match name {
        "PathPrefix" => Some(format!("path: {}", below(value))),
        "Path" => Some(format!("path: {value}")),
        "Host" => Some(format!("host: {value}")),
        "Method" => Some(format!("methods: [{value}]")),
        _ => None,
    }
}

/// How paths end that are no hosts.
const SCRIPTS: [&str; 5] = [".php", ".html", ".cgi", ".aspx", ".jsp"];

/// Everything below a path of which others write the beginning alone: `/api/*` for `/api` and `/api/`.
fn below(prefix: &str) -> String {
    format!("{}/*", prefix.trim_end_matches('/'))
}

#[cfg(test)]
mod tests;
