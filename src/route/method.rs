//! Sets of methods.

use std::fmt;
use std::str::FromStr;

use http::Method;
use smallvec::SmallVec;

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
        // A token may hold a star, but no method does: an operator who writes one means every method.
        let method = Method::from_bytes(text.trim().to_ascii_uppercase().as_bytes());
        let method = method.ok().filter(|method| !method.as_str().contains('*'));
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

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a method")]
pub struct InvalidMethod(pub String);

#[cfg(test)]
mod tests {
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
