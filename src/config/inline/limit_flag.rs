//! Parses a `--limit` flag.

use crate::config::diagnostic::Mistakes;
use crate::config::inline::{RequestSet, flag, map, scalar};
use crate::config::source::SourceRange;
use crate::config::yaml::{Content, Node};
use crate::rules::key::Selector;
use crate::rules::request::CanonicalPath;

/// A parsed `--limit` flag.
#[derive(Clone, Debug)]
pub(super) struct LimitFlag {
    pub(super) scope: RequestScope,
    pub(super) node: Node,
}

/// The requests that a limit applies to.
#[derive(Clone, Debug)]
pub(super) struct RequestScope {
    pub(super) at: SourceRange,
    /// Upper case, sorted; empty: any method.
    methods: Vec<String>,
    path: String,
}

impl RequestScope {
    pub(super) fn is_everything(&self) -> bool {
        self.methods.is_empty() && self.path == "/*"
    }

    pub(super) fn request_sets(&self) -> Vec<RequestSet> {
        let (path, open) = match self.path.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (self.path.as_str(), false),
        };
        let canonical = CanonicalPath::new(if path.is_empty() { "/" } else { path });
        let segments: Vec<_> =
            canonical.cased().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let request_set = |method| RequestSet { method, segments: segments.clone(), open };
        if self.methods.is_empty() {
            return vec![request_set(None)];
        }
        self.methods.iter().map(|method| request_set(Some(method.clone()))).collect()
    }
}

/// Reads `[METHODS] PATH KEY[,KEY] RATE` as the `number`th limit.
pub(super) fn parse_limit(number: usize, text: &str, mistakes: &mut Mistakes) -> Option<LimitFlag> {
    let whole = flag("--limit", text, mistakes);
    let mut rest = FlagWords { text, whole: whole.at, next: 0 };
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
    let parts =
        if key == "[]" { Vec::new() } else { key.split(',').map(|part| key_part(key_at, part.trim())).collect() };
    let node = map(
        whole.at,
        vec![
            ("name", scalar(scope_at, format!("limit-{number}"))),
            ("key", Node { at: key_at, content: Content::List(parts) }),
            ("rate", scalar(rate_at, rate.to_owned())),
        ],
    );
    methods.sort();
    Some(LimitFlag { scope: RequestScope { at: scope_at, methods, path: path.to_owned() }, node })
}

/// A selector. Names that people log in with are folded, because a flag has no place to say how.
fn key_part(at: SourceRange, selector: &str) -> Node {
    let is_name = selector.parse::<Selector>().is_ok_and(|selector| selector.normalises());
    if is_name {
        let options = map(at, vec![("fold", scalar(at, "letters".to_owned()))]);
        return map(at, vec![(selector, options)]);
    }
    scalar(at, selector.to_owned())
}

/// Splits a flag into words, each with its place.
struct FlagWords<'t> {
    text: &'t str,
    whole: SourceRange,
    next: usize,
}

impl<'t> FlagWords<'t> {
    fn word(&mut self) -> Option<(SourceRange, &'t str)> {
        let rest = self.remaining();
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.take(length)
    }

    /// Words joined by commas: `client_ip, param.username` is one list.
    fn list(&mut self) -> Option<(SourceRange, &'t str)> {
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

    fn remainder(&mut self) -> Option<(SourceRange, &'t str)> {
        let length = self.remaining().trim_end().len();
        self.take(length)
    }

    fn remaining(&mut self) -> &'t str {
        let rest = self.text[self.next..].trim_start();
        self.next = self.text.len() - rest.len();
        rest
    }

    fn take(&mut self, bytes: usize) -> Option<(SourceRange, &'t str)> {
        let start = self.next;
        self.next += bytes;
        let taken = &self.text[start..self.next];
        let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let at = SourceRange { column: count(&self.text[..start]) + 1, length: count(taken), ..self.whole };
        (!taken.is_empty()).then_some((at, taken))
    }
}
