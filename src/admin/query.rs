//! Reads the parameters of a query, each at most once. What is not known is refused, so that a mistyped parameter does not
//! silently mean something else.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::AdminState;
use super::problem::Problem;
use crate::decision::operator::InvalidLimitQuery;
use crate::spelling::listed;
use crate::spelling::nearest;

/// The parameters that have not been taken yet.
#[derive(Debug)]
pub(super) struct Query<'q> {
    known: &'static [&'static str],
    parameters: Vec<(Cow<'q, str>, Cow<'q, str>)>,
}

impl<'q> Query<'q> {
    /// `known` are the parameters that there are.
    pub(super) fn read(query: Option<&'q str>, known: &'static [&'static str]) -> Result<Self, Problem> {
        let parameters: Vec<_> = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
        for (position, (name, _)) in parameters.iter().enumerate() {
            if !known.contains(&&**name) {
                return Err(unknown(name, known));
            }
            if parameters[..position].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::bad_request(format!("several values for `{name}`")));
            }
        }
        Ok(Self { known, parameters })
    }

    /// The value of a parameter; `None`: it is missing.
    pub(super) fn text(&self, name: &'static str) -> Option<&str> {
        debug_assert!(self.known.contains(&name), "{name} is no known parameter");
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// A whole number within bounds.
    pub(super) fn number(&self, name: &'static str, default: u64, bounds: RangeInclusive<u64>) -> Result<u64, Problem> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_plain && bounds.contains(number));
        number.ok_or_else(|| {
            Problem::bad_request(format!("`{name}` is a whole number from {} to {}", bounds.start(), bounds.end()))
        })
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(&self, name: &'static str, default: T, words: &[(&str, T)]) -> Result<T, Problem> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            Problem::bad_request(format!("`{name}` is one of {}", listed(&words)))
        })
    }
}

/// The limit of this name, which a parameter names.
pub(super) fn known_limit(state: &AdminState, name: &str) -> Result<Arc<str>, Problem> {
    let policy = state.policy.load();
    let names: Vec<_> = policy.limits.iter().map(|limit| &limit.name).collect();
    if let Some(found) = names.iter().find(|known| &****known == name) {
        return Ok(Arc::clone(found));
    }
    let names: Vec<_> = names.iter().map(|name| &***name).collect();
    let near = nearest(name, &names).map(str::to_owned);
    Err(Problem::invalid_query(&InvalidLimitQuery::NoSuchLimit { near }))
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let hint = nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Problem::bad_request(format!("there is no such parameter; the parameters are {}{hint}", listed(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_read_once_and_within_its_bounds() {
        let of =
            |query| Query::read(Some(query), &["minutes", "by"]).and_then(|read| read.number("minutes", 60, 1..=9));
        assert_eq!(of(""), Ok(60));
        assert_eq!(of("minutes=9&by=x"), Ok(9));
        for wrong in
            ["minutes=0", "minutes=10", "minutes=", "minutes=+1", "minutes=1.5", "minutes=1&minutes=1", "minute=1"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_word_is_one_of_those_that_are_known() {
        let of = |query| Query::read(Some(query), &["by"]).and_then(|read| read.word("by", 0, &[("denied", 1)]));
        assert_eq!((of(""), of("by=denied")), (Ok(0), Ok(1)));
        assert!(of("by=Denied").is_err() && of("by=").is_err());
    }
}
