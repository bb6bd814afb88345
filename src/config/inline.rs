//! A configuration without a file: `run --upstream URL --limit 'POST /login client_ip 5/minute'`, built through the same
//! checks as a file.

use std::path::PathBuf;

use super::Diagnostic;
use super::Settings;
use super::compile;
use super::diagnostic::Mistakes;
use super::raw::Document;
use super::raw::Raw;
use super::source::Place;
use super::source::Source;
use super::yaml::Content;
use super::yaml::Name;
use super::yaml::Node;
use crate::request::CanonicalPath;

/// What the command line says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Flags {
    pub upstream: String,
    /// `None`: port 8080 of every address.
    pub listen: Option<String>,
    /// `None`: no admin listener.
    pub admin: Option<String>,
    /// Each `[METHODS] PATH KEY[,KEY] RATE`.
    pub limits: Vec<String>,
}

/// Settings from flags alone. All mistakes at once, each under the name of its flag.
///
/// Unlike routes of a file, every limit holds for each request that it matches, whatever the order of the flags.
pub fn inline(flags: &Flags) -> Result<Settings, Vec<Diagnostic>> {
    let mut mistakes = Mistakes::default();
    let listen = flag("--listen", flags.listen.as_deref().unwrap_or("0.0.0.0:8080"), &mut mistakes);
    let upstream = flag("--upstream", &flags.upstream, &mut mistakes);
    let at = upstream.at;
    let limits: Vec<Limit> =
        flags.limits.iter().enumerate().filter_map(|(index, text)| limit(index + 1, text, &mut mistakes)).collect();

    let (everywhere, somewhere): (Vec<_>, Vec<_>) = limits.into_iter().partition(|limit| limit.scope.is_everything());
    let everywhere = everywhere.into_iter().map(|limit| limit.node).collect();
    let mut sections = vec![
        ("listen", listen),
        ("upstream", upstream),
        ("limits", Node { at, content: Content::List(everywhere) }),
        ("routes", Node { at, content: Content::List(routes(&somewhere, &mut mistakes)) }),
    ];
    if let Some(address) = &flags.admin {
        let address = flag("--admin", address, &mut mistakes);
        sections.push(("admin", map(address.at, vec![("address", address)])));
    }
    let document = Document::read(&map(at, sections), &mut mistakes);
    compile::compile(document.as_ref(), PathBuf::new(), Vec::new(), mistakes)
}

/// One `--limit`, for every method apart.
#[derive(Clone, Debug)]
struct Limit {
    scope: Scope,
    node: Node,
}

/// Which requests a limit is for.
#[derive(Clone, Debug)]
struct Scope {
    at: Place,
    /// Upper case, sorted; none: any method.
    methods: Vec<String>,
    path: String,
}

/// The requests of one method, or any, below one path: what one route of the table matches.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Area {
    method: Option<String>,
    segments: Vec<String>,
    /// Whether more segments may follow.
    open: bool,
}

impl Scope {
    fn is_everything(&self) -> bool {
        self.methods.is_empty() && self.path == "/*"
    }

    fn areas(&self) -> Vec<Area> {
        let (path, open) = match self.path.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (self.path.as_str(), false),
        };
        let canonical = CanonicalPath::new(if path.is_empty() { "/" } else { path });
        let segments: Vec<_> =
            canonical.cased().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let area = |method| Area { method, segments: segments.clone(), open };
        if self.methods.is_empty() {
            return vec![area(None)];
        }
        self.methods.iter().map(|method| area(Some(method.clone()))).collect()
    }
}

impl Area {
    /// What lies in both.
    fn intersection(&self, other: &Self) -> Option<Self> {
        let method = match (&self.method, &other.method) {
            (None, method) | (method, None) => method.clone(),
            (Some(one), Some(same)) if one == same => Some(one.clone()),
            // GET holds HEAD.
            (Some(one), Some(two)) if is_get_and_head(one, two) => Some("HEAD".to_owned()),
            _ => return None,
        };
        let (short, long) = if self.segments.len() <= other.segments.len() { (self, other) } else { (other, self) };
        if short.segments.len() < long.segments.len() && !short.open {
            return None;
        }
        let mut segments = Vec::with_capacity(long.segments.len());
        for (index, segment) in long.segments.iter().enumerate() {
            segments.push(match short.segments.get(index) {
                None => segment.clone(),
                Some(other) if other.eq_ignore_ascii_case(segment) || is_capture(other) => segment.clone(),
                Some(other) if is_capture(segment) => other.clone(),
                Some(_) => return None,
            });
        }
        let open = if short.segments.len() == long.segments.len() { short.open && long.open } else { long.open };
        Some(Self { method, segments, open })
    }

    fn lies_in(&self, other: &Self) -> bool {
        self.intersection(other).is_some_and(|both| both.is_same(self))
    }

    /// Equal but for the names of captures and the case of letters.
    fn is_same(&self, other: &Self) -> bool {
        let alike =
            |(one, two): (&String, &String)| one.eq_ignore_ascii_case(two) || (is_capture(one) && is_capture(two));
        self.method == other.method
            && self.open == other.open
            && self.segments.len() == other.segments.len()
            && self.segments.iter().zip(&other.segments).all(alike)
    }

    fn text(&self) -> String {
        let method = self.method.as_ref().map(|method| format!("{method} ")).unwrap_or_default();
        let path = self.segments.join("/");
        match (self.open, path.is_empty()) {
            (true, true) => format!("{method}/*"),
            (true, false) => format!("{method}/{path}/*"),
            (false, _) => format!("{method}/{path}"),
        }
    }
}

/// A route for every area and for what lies in several, the narrowest first, each with every limit that holds there: so
/// the first match has them all.
fn routes(limits: &[Limit], mistakes: &mut Mistakes) -> Vec<Node> {
    let mut areas: Vec<(Area, Place)> = Vec::new();
    let mut open: Vec<(Area, Place)> =
        limits.iter().flat_map(|limit| limit.scope.areas().into_iter().map(|area| (area, limit.scope.at))).collect();
    open.reverse();
    while let Some((area, at)) = open.pop() {
        if areas.iter().any(|(known, _)| known.is_same(&area)) {
            continue;
        }
        if areas.len() == MAX_AREAS {
            let message = format!("these limits overlap in more than {MAX_AREAS} ways");
            mistakes.report(at, message, "write them into a file: `portcullis run -c portcullis.yaml`");
            return Vec::new();
        }
        open.extend(areas.iter().filter_map(|(known, _)| area.intersection(known)).map(|both| (both, at)));
        areas.push((area, at));
    }
    // What lies in another area lies in all that hold that one too.
    areas.sort_by_cached_key(|(area, _)| {
        let around = limits.iter().flat_map(|limit| limit.scope.areas()).filter(|other| area.lies_in(other)).count();
        std::cmp::Reverse((around, area.segments.len(), !area.open))
    });
    let route = |(area, at): &(Area, Place)| {
        let holds = |limit: &&Limit| limit.scope.areas().iter().any(|other| area.lies_in(other));
        let nodes = limits.iter().filter(holds).map(|limit| limit.node.clone()).collect();
        map(*at, vec![("match", scalar(*at, area.text())), ("limits", Node { at: *at, content: Content::List(nodes) })])
    };
    areas.iter().map(route).collect()
}

/// Reads `[METHODS] PATH KEY[,KEY] RATE` as the `number`th limit.
fn limit(number: usize, text: &str, mistakes: &mut Mistakes) -> Option<Limit> {
    let whole = flag("--limit", text, mistakes);
    let mut rest = Words { text, whole: whole.at, next: 0 };
    let mut scope_at = whole.at;
    let mut methods = Vec::new();
    let mut first = rest.word();
    if let Some((at, word)) = first.filter(|(_, word)| !word.starts_with('/')) {
        scope_at = at;
        methods = word.split(',').map(str::to_ascii_uppercase).collect();
        first = rest.word();
    }
    let path = first.filter(|(_, word)| word.starts_with('/'));
    let key = rest.list();
    let rate = rest.remainder();
    let (Some((path_at, path)), Some((key_at, key)), Some((rate_at, rate))) = (path, key, rate) else {
        mistakes.report(
            whole.at,
            "a limit is a path, a key and a rate",
            "write for instance `--limit 'POST /login client_ip 5/minute'`",
        );
        return None;
    };
    if methods.is_empty() {
        scope_at = path_at;
    } else {
        scope_at.length = path_at.column + path_at.length - scope_at.column;
    }
    let parts = if key == "[]" {
        Vec::new()
    } else {
        key.split(',').map(|part| scalar(key_at, part.trim().to_owned())).collect()
    };
    let node = map(
        whole.at,
        vec![
            ("name", scalar(scope_at, format!("limit-{number}"))),
            ("key", Node { at: key_at, content: Content::List(parts) }),
            ("rate", scalar(rate_at, rate.to_owned())),
        ],
    );
    methods.sort();
    Some(Limit { scope: Scope { at: scope_at, methods, path: path.to_owned() }, node })
}

/// The words of a flag, each with its place.
struct Words<'t> {
    text: &'t str,
    whole: Place,
    next: usize,
}

impl<'t> Words<'t> {
    fn word(&mut self) -> Option<(Place, &'t str)> {
        let rest = self.remaining();
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.take(length)
    }

    /// Words joined by commas: `client_ip, param.username` is one thing.
    fn list(&mut self) -> Option<(Place, &'t str)> {
        let rest = self.remaining();
        let mut end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        while rest[..end].ends_with(',') {
            let after = &rest[end..];
            let word = after.trim_start();
            if word.is_empty() {
                break;
            }
            end = rest.len() - word.len() + word.find(char::is_whitespace).unwrap_or(word.len());
        }
        self.take(end)
    }

    fn remainder(&mut self) -> Option<(Place, &'t str)> {
        let length = self.remaining().trim_end().len();
        self.take(length)
    }

    fn remaining(&mut self) -> &'t str {
        let rest = self.text[self.next..].trim_start();
        self.next = self.text.len() - rest.len();
        rest
    }

    fn take(&mut self, bytes: usize) -> Option<(Place, &'t str)> {
        let start = self.next;
        self.next += bytes;
        let taken = &self.text[start..self.next];
        let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let at = Place { column: count(&self.text[..start]) + 1, length: count(taken), ..self.whole };
        (!taken.is_empty()).then_some((at, taken))
    }
}

fn flag(name: &str, text: &str, mistakes: &mut Mistakes) -> Node {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let source = mistakes.source(Source::new(name, text.to_owned()));
    scalar(Place { source, line: 1, column: 1, length }, text.to_owned())
}

fn scalar(at: Place, text: String) -> Node {
    Node { at, content: Content::Scalar(text) }
}

fn map(at: Place, entries: Vec<(&str, Node)>) -> Node {
    let named = entries.into_iter().map(|(name, node)| (Name { at: node.at, text: name.to_owned() }, node));
    Node { at, content: Content::Map(named.collect()) }
}

fn is_capture(segment: &str) -> bool {
    segment.starts_with('{')
}

fn is_get_and_head(one: &str, two: &str) -> bool {
    matches!((one, two), ("GET", "HEAD") | ("HEAD", "GET"))
}

/// More overlaps than these are for a file.
const MAX_AREAS: usize = 300;

#[cfg(test)]
mod tests;
