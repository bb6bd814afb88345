//! Groups paths: `/users/17/posts` and `/users/4711/posts` are both `/users/{id}/posts`.

use std::collections::BTreeMap;
use std::{fmt, mem};

use crate::replay::suggest::{RouteShape, is_named_like_a_login, method_group};

/// Paths are distinguished down to this segment.
const DEPTH: usize = 5;

/// More names than this beside one another are values.
const MOST_CHILDREN: usize = 40;

/// A name stays a name if at least one request in this many has it.
const RARE: u64 = 50;

const LONGEST_NAME: usize = 48;

const STATIC: [&str; 20] = [
    "css", "js", "mjs", "map", "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "woff", "woff2", "ttf",
    "eot", "txt", "mp4", "webm", "pdf",
];

/// The paths of a sample, segment by segment.
#[derive(Debug, Default)]
pub(super) struct PathTree {
    /// Requests that end here, by method.
    ends: BTreeMap<Box<str>, u64>,
    /// Requests that go on deeper than the tree, by method.
    deeper: BTreeMap<Box<str>, u64>,
    requests: u64,
    children: BTreeMap<Box<str>, PathTree>,
    /// The subtree for any other segment.
    any: Option<Box<PathTree>>,
}

impl PathTree {
    /// Adds a request to these segments of its path.
    pub(super) fn add(&mut self, method: &str, segments: &[&str]) {
        self.add_below(method_group(method), segments, DEPTH);
    }

    fn add_below(&mut self, method: &str, segments: &[&str], depth: usize) {
        self.requests += 1;
        let Some((first, rest)) = segments.split_first() else {
            *self.ends.entry(method.into()).or_default() += 1;
            return;
        };
        if depth == 0 {
            *self.deeper.entry(method.into()).or_default() += 1;
            return;
        }
        let child = if is_identifier(first) {
            self.any.get_or_insert_default()
        } else {
            self.children.entry((*first).into()).or_default()
        };
        child.add_below(method, rest, depth - 1);
    }

    /// All groups. Where a segment has many values, the rare ones are taken together.
    pub(super) fn groups(mut self) -> Vec<RouteShape> {
        let mut groups = Vec::new();
        self.collect(&mut Vec::new(), &mut groups);
        groups
    }

    fn collect(&mut self, path: &mut Vec<Option<Box<str>>>, groups: &mut Vec<RouteShape>) {
        self.merge_rare();
        for (ends, is_open) in [(&self.ends, false), (&self.deeper, true)] {
            for (method, requests) in ends {
                let path = PathGroup { segments: path.clone(), is_open };
                groups.push(RouteShape { method: method.clone(), path, requests: *requests });
            }
        }
        let children = self.children.iter_mut().map(|(name, child)| (Some(name.clone()), child));
        for (segment, child) in children.chain(self.any.as_deref_mut().map(|any| (None, any))) {
            path.push(segment);
            child.collect(path, groups);
            path.pop();
        }
    }

    fn merge_rare(&mut self) {
        if self.children.len() <= MOST_CHILDREN {
            return;
        }
        let least = self.requests / RARE;
        let is_rare = |name: &str, child: &Self| child.requests < least.max(2) && !is_named_like_a_login(name);
        let (rare, frequent) = mem::take(&mut self.children)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(name, child)| is_rare(name, child));
        self.children = frequent;
        for child in rare.into_values() {
            self.any.get_or_insert_default().merge(child);
        }
    }

    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        for (ends, others) in [(&mut self.ends, other.ends), (&mut self.deeper, other.deeper)] {
            for (method, requests) in others {
                *ends.entry(method).or_default() += requests;
            }
        }
        for (name, child) in other.children {
            self.children.entry(name).or_default().merge(child);
        }
        if let Some(any) = other.any {
            self.any.get_or_insert_default().merge(*any);
        }
    }
}

/// The segments of a canonical path.
pub(super) fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

/// Whether a path is a picture, a style sheet or the like. These get no limits of their own.
pub(super) fn is_static(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.rsplit_once('.').is_some_and(|(_, suffix)| STATIC.contains(&suffix))
}

/// Whether a segment names one of many things: a number, a UUID, a hash, a token, or anything with unusual letters.
fn is_identifier(segment: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    !segment.bytes().all(is_plain)
        || digits == segment.len()
        || segment.len() >= 8 && digits > 0 && segment.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        || segment.len() >= 16 && digits * 5 >= segment.len()
        || segment.len() > LONGEST_NAME
}

// Paths of one shape, as a pattern of the configuration.

/// Paths of one shape.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct PathGroup {
    /// `None`: any segment.
    pub(super) segments: Vec<Option<Box<str>>>,
    /// More segments may follow.
    pub(super) is_open: bool,
}

impl PathGroup {
    /// How much it matches: least first.
    pub(super) fn width(&self) -> (bool, usize) {
        (self.is_open, self.segments.iter().filter(|segment| segment.is_none()).count())
    }
}

/// As a pattern of the configuration.
impl fmt::Display for PathGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut captures = 0;
        for segment in &self.segments {
            if let Some(name) = segment {
                write!(f, "/{name}")?;
            } else {
                captures += 1;
                let number = if captures == 1 { String::new() } else { captures.to_string() };
                write!(f, "/{{id{number}}}")?;
            }
        }
        match (self.segments.is_empty(), self.is_open) {
            (_, true) => f.write_str("/*"),
            (true, false) => f.write_str("/"),
            (false, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(paths: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut tree = PathTree::default();
        for path in paths {
            tree.add("GET", &segments(&path));
        }
        tree.groups().iter().map(|group| format!("{} {}", group.path, group.requests)).collect()
    }

    #[test]
    fn identifiers_become_captures() {
        let paths = ["/", "/users/17", "/users/4711/posts", "/users/8d3e1b6e-0000-4000-8000-1234567890ab", "/a/b%3f"];
        assert_eq!(grouped(paths.map(str::to_owned)), ["/ 1", "/a/{id} 1", "/users/{id} 2", "/users/{id}/posts 1"]);
    }

    #[test]
    fn many_values_in_one_place_are_one_capture_and_frequent_ones_stay() {
        let names = (0..100).map(|number| format!("/blog/a-{}-name", (b'a' + number % 26) as char)).chain(
            (0..50_u8).map(|number| format!("/blog/{}{}", (b'a' + number % 26) as char, (b'a' + number / 26) as char)),
        );
        let paths = names.chain((0..200).map(|_| "/blog/index".to_owned())).chain(["/blog/login".to_owned()]);
        assert_eq!(grouped(paths), ["/blog/index 200", "/blog/login 1", "/blog/{id} 150"]);
    }

    #[test]
    fn deep_paths_end_open() {
        assert_eq!(grouped(["/a/b/c/d/e/f/g".to_owned(), "/a/b/c/d/e/h".to_owned()]), ["/a/b/c/d/e/* 2"]);
    }
}
