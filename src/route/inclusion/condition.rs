//! Whether one condition matches every request that another one matches.

use crate::route::Condition;
use crate::route::MethodSet;
use crate::route::PathPattern;
use crate::route::PathRegex;

impl Condition {
    /// Whether every request that meets `other` meets this too. `false` also where that is not certain.
    pub fn includes(&self, other: &Self) -> bool {
        // Paths last: they are taken apart to be compared.
        self.includes_methods(other)
            && self.includes_hosts(other)
            && self.headers.iter().all(|header| other.headers.contains(header))
            && self.queries.iter().all(|query| other.queries.contains(query))
            && self.cookies.iter().all(|cookie| other.cookies.contains(cookie))
            && self.includes_clients(other)
            && self.includes_paths(other)
    }

    fn includes_methods(&self, other: &Self) -> bool {
        let included = |methods: &MethodSet| other.methods.as_ref().is_some_and(|others| methods.includes(others));
        self.methods.as_ref().is_none_or(included)
    }

    fn includes_hosts(&self, other: &Self) -> bool {
        self.host.as_ref().is_none_or(|host| other.host.as_ref().is_some_and(|other| host.includes(other)))
    }

    fn includes_paths(&self, other: &Self) -> bool {
        let is_same = |regex: &PathRegex| other.path_regex.as_ref().is_some_and(|other| regex.is_same(other));
        let included = |path: &PathPattern| other.path.as_ref().is_some_and(|other| path.includes(other));
        self.path_regex.as_ref().is_none_or(is_same)
            && self.path.as_ref().is_none_or(|path| path.is_everything() || included(path))
    }

    /// One of these lists must hold the client, so more lists match more clients.
    fn includes_clients(&self, other: &Self) -> bool {
        self.client.is_empty()
            || (!other.client.is_empty() && other.client.iter().all(|list| self.client.contains(list)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glob::Glob;
    use crate::list::ListId;
    use crate::route::Case;

    fn short(text: &str) -> Condition {
        Condition::short(text, Case::Ignored).unwrap()
    }

    #[test]
    fn fewer_methods_are_included_in_more() {
        for (one, other, expected) in [
            ("/*", "POST /login", true),
            ("POST /login", "/login", false),
            ("GET /a", "HEAD /a", true),
            ("HEAD /a", "GET /a", false),
            ("GET,POST /*", "POST /a", true),
        ] {
            assert_eq!(short(one).includes(&short(other)), expected, "{other} in {one}");
        }
    }

    #[test]
    fn what_asks_for_more_is_included_in_what_asks_for_less() {
        let all = || short("/*");
        let narrow = Condition { queries: vec![("a".into(), Glob::new("1"))], client: vec![ListId(1)], ..all() };
        assert!(all().includes(&narrow));
        assert!(!narrow.includes(&all()));
        assert!(narrow.includes(&narrow));
        let wider = Condition { client: vec![ListId(0), ListId(1)], ..all() };
        assert!(wider.includes(&narrow));
        assert!(!narrow.includes(&wider));
        let other = Condition { queries: vec![("a".into(), Glob::new("2"))], ..all() };
        assert!(!other.includes(&narrow));
    }
}
