//! Which requests a route matches, so that overlaps of limits can be found.

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
