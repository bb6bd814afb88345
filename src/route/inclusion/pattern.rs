//! Whether one path pattern matches every path that another one matches.

use crate::request::CanonicalPath;
use crate::route::pattern::Case;
use crate::route::pattern::PathPattern;
use crate::route::pattern::Segment;
use crate::route::pattern::Shape;

impl PathPattern {
    /// Whether it matches every path.
    pub(super) fn is_everything(&self) -> bool {
        matches!(self.walked(self.case), (segments, true) if segments.is_empty())
    }

    /// Whether this matches every path that `other` matches. `false` also where that is not certain.
    pub(super) fn includes(&self, other: &Self) -> bool {
        // Paths that differ only in case differ for this pattern, but not for the other.
        if self.case == Case::Sensitive && other.case == Case::Ignored {
            return false;
        }
        let ((segments, open), (others, others_open)) = (self.walked(self.case), other.walked(self.case));
        let reaches =
            if open { segments.len() <= others.len() } else { !others_open && segments.len() == others.len() };
        reaches && segments.iter().zip(&others).all(|(one, other)| one.is_none() || one == other)
    }

    /// Its segments in the spelling that `case` compares, `None` for any segment, and whether more may follow.
    pub(super) fn walked(&self, case: Case) -> (Vec<Option<String>>, bool) {
        let (path, open) = match &self.shape {
            Shape::Exact(path) => (path, false),
            Shape::Prefix(path) => (path, true),
            Shape::Segments { segments, open } => {
                let walked = segments.iter().map(|segment| match segment {
                    Segment::Literal(literal) => Some(spelled(&format!("/{literal}"), case)[1..].to_owned()),
                    Segment::Named(_) => None,
                });
                return (walked.collect(), *open);
            }
        };
        let parts = spelled(path, case);
        (parts.split('/').filter(|part| !part.is_empty()).map(|part| Some(part.to_owned())).collect(), open)
    }
}

fn spelled(path: &str, case: Case) -> String {
    let path = if path.is_empty() { "/" } else { path };
    case.of(&CanonicalPath::new(path)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let [one, other] = [one, other].map(|text| PathPattern::new(text, Case::Ignored).unwrap());
        assert_eq!(one.includes(&other), expected, "{other} in {one}");
    }

    #[test]
    fn a_pattern_includes_what_it_matches_in_every_case() {
        check("/*", "/", true);
        check("/*", "/users/{id}/*", true);
        check("/login", "//LOGIN/", true);
        check("/login", "/login/*", false);
        check("/login/*", "/login", true);
        check("/login/*", "/log", false);
        check("/a/*", "/a/b/*", true);
        check("/a/b/*", "/a/*", false);
        check("/{page}", "/login", true);
        check("/{page}", "/", false);
        check("/{page}", "/{other}", true);
        check("/login", "/{page}", false);
        check("/users/{id}", "/users/7/posts", false);
        check("/users/{id}/*", "/users/7/posts", true);
        check("/users/{id}/*", "/users", false);
    }

    #[test]
    fn what_is_compared_with_case_includes_nothing_that_is_not() {
        let [cased, folded] = [Case::Sensitive, Case::Ignored].map(|case| PathPattern::new("/Login", case).unwrap());
        assert!(!cased.includes(&folded));
        assert!(folded.includes(&cased));
        assert!(cased.includes(&cased));
    }
}
