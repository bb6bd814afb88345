//! A configuration without a file: `run --upstream URL --limit 'POST /login client_ip 5/minute'`, built through the same
//! checks as a file.

mod limit_flag;

use std::path::PathBuf;

use crate::config::compile;
use crate::config::diagnostic::{Diagnostic, Mistakes};
use crate::config::inline::limit_flag::{LimitFlag, parse_limit};
use crate::config::load::Settings;
use crate::config::raw::{Document, RawValue};
use crate::config::secrets::Place;
use crate::config::source::{SourceRange, SourceText};
use crate::config::yaml::{Content, MapKey, Node};

// The flags become a document, and the document becomes settings.

/// The flags of `run` that stand for a configuration.
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

/// Settings from flags alone. Returns all mistakes at once, each under the name of its flag.
///
/// Unlike the routes of a file, every limit applies to each request that it matches, in any order of the flags.
pub fn inline(flags: &Flags) -> Result<Settings, Vec<Diagnostic>> {
    let mut mistakes = Mistakes::default();
    let listen = flag("--listen", flags.listen.as_deref().unwrap_or("0.0.0.0:8080"), &mut mistakes);
    let upstream = flag("--upstream", &flags.upstream, &mut mistakes);
    let at = upstream.at;
    let limits: Vec<LimitFlag> = flags
        .limits
        .iter()
        .enumerate()
        .filter_map(|(index, text)| parse_limit(index + 1, text, &mut mistakes))
        .collect();

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
    let root = map(at, sections);
    let document = Document::read(&root, &mut mistakes);
    compile::compile(document.as_ref(), &root, PathBuf::new(), Vec::new(), mistakes)
}

// Parts of a document that is made from flags.

pub(super) fn flag(name: &str, text: &str, mistakes: &mut Mistakes) -> Node {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let source = mistakes.source(SourceText::new(name, text.to_owned()));
    let at = SourceRange { source, line: 1, column: 1, length };
    mistakes.note_value(at, text, Place::Public);
    mistakes.note_all_read(source);
    scalar(at, text.to_owned())
}

pub(super) fn scalar(at: SourceRange, text: String) -> Node {
    Node { at, content: Content::Scalar(text) }
}

pub(super) fn map(at: SourceRange, entries: Vec<(&str, Node)>) -> Node {
    let named = entries.into_iter().map(|(name, node)| (MapKey { at: node.at, text: name.to_owned() }, node));
    Node { at, content: Content::Map(named.collect()) }
}

// Routes out of the scopes of all `--limit` flags.

/// More overlaps than this are for a file.
const MAX_ROUTES: usize = 300;

/// A route for every set of requests and for every overlap of several, the narrowest first, each with every limit that
/// applies there. The first match therefore has all limits of a request.
fn routes(limits: &[LimitFlag], mistakes: &mut Mistakes) -> Vec<Node> {
    let mut sets: Vec<(RequestSet, SourceRange)> = Vec::new();
    let mut open: Vec<(RequestSet, SourceRange)> = limits
        .iter()
        .flat_map(|limit| limit.scope.request_sets().into_iter().map(|set| (set, limit.scope.at)))
        .collect();
    open.reverse();
    while let Some((set, at)) = open.pop() {
        if sets.iter().any(|(known, _)| known.is_same(&set)) {
            continue;
        }
        if sets.len() == MAX_ROUTES {
            let message = format!("these limits overlap in more than {MAX_ROUTES} ways");
            mistakes.report(at, message, "write them into a file: `portcullis run -c portcullis.yaml`");
            return Vec::new();
        }
        open.extend(sets.iter().filter_map(|(known, _)| set.intersection(known)).map(|both| (both, at)));
        sets.push((set, at));
    }
    // A set within another one is also within all that contain that one.
    sets.sort_by_cached_key(|(set, _)| {
        let containing =
            limits.iter().flat_map(|limit| limit.scope.request_sets()).filter(|other| set.is_within(other)).count();
        std::cmp::Reverse((containing, set.segments.len(), !set.open))
    });
    let route = |(set, at): &(RequestSet, SourceRange)| {
        let holds = |limit: &&LimitFlag| limit.scope.request_sets().iter().any(|other| set.is_within(other));
        let nodes = limits.iter().filter(holds).map(|limit| limit.node.clone()).collect();
        map(*at, vec![("match", scalar(*at, set.text())), ("limits", Node { at: *at, content: Content::List(nodes) })])
    };
    sets.iter().map(route).collect()
}

// Which requests a route matches, so that overlaps of limits can be found.

/// The requests of one method, or of any, at one path or below it: what one route matches.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct RequestSet {
    pub(super) method: Option<String>,
    pub(super) segments: Vec<String>,
    /// Whether more segments may follow.
    pub(super) open: bool,
}

impl RequestSet {
    /// The requests that are in both sets.
    pub(super) fn intersection(&self, other: &Self) -> Option<Self> {
        let method = match (&self.method, &other.method) {
            (None, method) | (method, None) => method.clone(),
            (Some(one), Some(same)) if one == same => Some(one.clone()),
            // A limit on GET also applies to HEAD.
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

    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.intersection(other).is_some_and(|both| both.is_same(self))
    }

    /// Equal apart from the names of captures and the case of letters.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let alike =
            |(one, two): (&String, &String)| one.eq_ignore_ascii_case(two) || (is_capture(one) && is_capture(two));
        self.method == other.method
            && self.open == other.open
            && self.segments.len() == other.segments.len()
            && self.segments.iter().zip(&other.segments).all(alike)
    }

    pub(super) fn text(&self) -> String {
        let method = self.method.as_ref().map(|method| format!("{method} ")).unwrap_or_default();
        let path = self.segments.join("/");
        match (self.open, path.is_empty()) {
            (true, true) => format!("{method}/*"),
            (true, false) => format!("{method}/{path}/*"),
            (false, _) => format!("{method}/{path}"),
        }
    }
}

fn is_capture(segment: &str) -> bool {
    segment.starts_with('{')
}

fn is_get_and_head(one: &str, two: &str) -> bool {
    matches!((one, two), ("GET", "HEAD") | ("HEAD", "GET"))
}

#[cfg(test)]
mod tests;
