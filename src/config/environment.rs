//! Puts the environment's values in place of `${NAME}`.

use std::borrow::Cow;

/// Looks up the value of a variable; `None`: not set.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Why a `${` cannot be replaced.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidVariable {
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    #[error("`${{` is not closed by a `}}`")]
    Unclosed,
    #[error("`{0}` is not the name of an environment variable")]
    InvalidName(String),
}

/// Puts the environment's values in place of `${NAME}` and `${NAME:-default}`. The default also replaces an empty value.
/// `$${` is a literal `${`. A value that was put in place is not searched for `${` again.
pub fn substitute<'t>(text: &'t str, environment: Environment<'_>) -> Result<Cow<'t, str>, InvalidVariable> {
    if !text.contains("${") {
        return Ok(Cow::Borrowed(text));
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            result.push_str(&rest[..at - 1]);
            result.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        result.push_str(&rest[..at]);
        let (inside, after) = rest[at + 2..].split_once('}').ok_or(InvalidVariable::Unclosed)?;
        result.push_str(&resolve(inside, environment)?);
        rest = after;
    }
    result.push_str(rest);
    Ok(Cow::Owned(result))
}

fn resolve(inside: &str, environment: Environment<'_>) -> Result<String, InvalidVariable> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !is_name {
        return Err(InvalidVariable::InvalidName(name.to_owned()));
    }
    match (environment(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(InvalidVariable::Unset(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Result<&str, InvalidVariable>) {
        let environment = |name: &str| match name {
            "PORT" => Some("8080".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${PORT}".to_owned()),
            _ => None,
        };
        assert_eq!(substitute(text, &environment).as_deref(), expected.as_ref().copied());
    }

    #[test]
    fn names_are_replaced_by_their_values() {
        check("no names", &Ok("no names"));
        check("0.0.0.0:${PORT}", &Ok("0.0.0.0:8080"));
        check("${PORT}${PORT}", &Ok("80808080"));
        check("${GONE:-7}", &Ok("7"));
        check("${GONE:-}", &Ok(""));
        check("${PORT:-7}", &Ok("8080"));
        check("${EMPTY:-7}", &Ok("7"));
        check("a${EMPTY}b", &Ok("ab"));
        check("$PORT $ {PORT} $", &Ok("$PORT $ {PORT} $"));
    }

    #[test]
    fn a_doubled_dollar_is_a_dollar() {
        check("$${PORT}", &Ok("${PORT}"));
        check("$${GONE", &Ok("${GONE"));
        check("é$${a}${PORT}", &Ok("é${a}8080"));
    }

    #[test]
    fn a_value_is_not_substituted_again() {
        check("${NESTED}", &Ok("${PORT}"));
    }

    #[test]
    fn an_invalid_variable_is_an_error() {
        check("${GONE}", &Err(InvalidVariable::Unset("GONE".to_owned())));
        check("${PORT", &Err(InvalidVariable::Unclosed));
        check("${}", &Err(InvalidVariable::InvalidName(String::new())));
        check("${a b}", &Err(InvalidVariable::InvalidName("a b".to_owned())));
        check("${1A}", &Err(InvalidVariable::InvalidName("1A".to_owned())));
    }
}
