//! Refuses parameters and bodies that an operation does not take, so that a mistake does not silently mean something else.
//! What an operation takes is what its description names, so no operation can be forgotten.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body::Body as _;
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr};

use crate::admin::AdminState;
use crate::admin::auth::PathAccess;
use crate::admin::openapi::operations;
use crate::admin::problem::Problem;
use crate::rules::decision::operator::InvalidLimitQuery;
use crate::words::units::{listed, nearest};

const NO_PARAMETERS: &str = "there are no parameters here";

const NOT_UTF8: &str = "an escape in the query is not UTF-8";

const NO_BODY: &str = "there is no body here";

/// In bytes, of a body that says nothing.
const MAX_EMPTY_BODY: usize = 256;

/// What each operation takes, by its path and method.
#[derive(Clone, Debug)]
pub(super) struct TakenInputs(Arc<HashMap<(String, Method), TakenInput>>);

#[derive(Clone, Copy, Debug)]
struct TakenInput {
    parameters: bool,
    body: bool,
}

impl TakenInputs {
    pub(super) fn of(description: &mut OpenApi) -> Self {
        let mut taken = HashMap::new();
        for (path, item) in &mut description.paths.paths {
            for (method, operation) in operations(item) {
                if is_strict(&method, path) {
                    taken.insert((path.clone(), method), TakenInput::of(operation));
                }
            }
        }
        Self(Arc::new(taken))
    }

    /// `None`: anything, or the method is not answered at all.
    fn at(&self, request: &Request<Body>) -> Option<TakenInput> {
        let path = request.extensions().get::<MatchedPath>()?;
        let method = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
        self.0.get(&(path.as_str().to_owned(), method)).copied()
    }
}

impl TakenInput {
    fn of(operation: &Operation) -> Self {
        let in_query = |parameter: &RefOr<Parameter>| match parameter {
            RefOr::T(parameter) => parameter.parameter_in == ParameterIn::Query,
            RefOr::Ref(_) => true,
        };
        Self { parameters: operation.parameters.iter().flatten().any(in_query), body: operation.request_body.is_some() }
    }

    async fn check(self, request: Request<Body>) -> Result<Request<Body>, Problem> {
        let query = request.uri().query().unwrap_or_default();
        if !self.parameters && !query.is_empty() {
            return Err(Problem::bad_request(NO_PARAMETERS));
        }
        if !is_utf8(query) {
            return Err(Problem::bad_request(NOT_UTF8));
        }
        if self.body || request.body().is_end_stream() {
            return Ok(request);
        }
        let (head, body) = request.into_parts();
        let body = read(body, MAX_EMPTY_BODY).await.map_err(|unread| match unread {
            UnreadBody::TooLong => Problem::bad_request(NO_BODY),
            unread => unread.into(),
        })?;
        if !says_nothing(&body) {
            return Err(Problem::bad_request(NO_BODY));
        }
        Ok(Request::from_parts(head, Body::empty()))
    }
}

/// Whether a body is empty, or the JSON that programs send where they have nothing to say: `{}` or `null`.
fn says_nothing(body: &[u8]) -> bool {
    body.is_empty()
        || match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => fields.is_empty(),
            Ok(value) => value.is_null(),
            Err(_) => false,
        }
}

/// Answers 400 where a request has what its operation does not take.
pub(super) async fn refuse_others(
    State(taken): State<TakenInputs>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    if let Some(taken) = taken.at(&request) {
        request = match taken.check(request).await {
            Ok(request) => request,
            Err(problem) => return problem.into_response(),
        };
    }
    next.run(request).await
}

/// Whether an operation refuses what it does not take. Probes, scrapers and links to the dashboard may have parameters of
/// their own.
pub(super) fn is_strict(method: &Method, path: &str) -> bool {
    PathAccess::of(method, path) == PathAccess::Api || path == "/session"
}

/// Whether the text that the escapes of a query stand for is UTF-8.
fn is_utf8(query: &str) -> bool {
    let mut text = Vec::with_capacity(query.len());
    let mut rest = query.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| first == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        text.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    str::from_utf8(&text).is_ok()
}

// Reads the parameters of a query, each at most once. What is not known is refused, so that a mistyped parameter does not
// silently mean something else.

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

// Reads the body of a request to the admin listener, within a size and a time.

/// Operators and their programs send few bytes, all at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a body was not read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UnreadBody {
    TooLong,
    CutShort,
    TooSlow,
}

/// The whole body, of at most `most` bytes.
pub(super) async fn read(body: Body, most: usize) -> Result<Bytes, UnreadBody> {
    match timeout(PATIENCE, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.source().is_some_and(<dyn Error>::is::<LengthLimitError>) => Err(UnreadBody::TooLong),
        Ok(Err(_)) => Err(UnreadBody::CutShort),
        Err(_) => Err(UnreadBody::TooSlow),
    }
}

impl From<UnreadBody> for Problem {
    fn from(unread: UnreadBody) -> Self {
        match unread {
            UnreadBody::TooLong => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"),
            UnreadBody::CutShort => Self::bad_request("the body ended early"),
            UnreadBody::TooSlow => Self::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive within 10 s"),
        }
    }
}

// Reads the JSON object that a request carries.

/// In bytes: more than any token, and than the key of a ban.
pub(super) const MAX_BODY: usize = 16 * 1024;

const FORM: &str = "application/x-www-form-urlencoded";

const NOT_JSON: &str = "the body is JSON: `content-type: application/json`";

/// The object in the body of a request, which has at most so many bytes. `expected` says what it should be. What was sent is not
/// repeated: it may be a token.
pub(super) async fn read_json<T: DeserializeOwned>(
    request: Request<Body>,
    most: usize,
    expected: &str,
) -> Result<T, Problem> {
    if !may_be_json(request.headers()) {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, NOT_JSON));
    }
    let body = read(request.into_body(), most).await.map_err(|unread| match unread {
        UnreadBody::TooLong => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has at most {} KiB", most / 1024))
        }
        unread => unread.into(),
    })?;
    let wrong = |line, column| Problem::bad_request(format!("{expected}: line {line}, column {column}"));
    // A list of the values in their order would be read too.
    if body.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(wrong(1, 1));
    }
    serde_json::from_slice(&body).map_err(|error| wrong(error.line(), error.column()))
}

/// Whether the body may be JSON. `curl -d` and the HTTP clients of several languages call every body a form, so that this label
/// says nothing.
fn may_be_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let (first, None) = (lines.next(), lines.next()) else { return false };
    let Some(line) = first else { return true };
    let Ok(line) = line.to_str() else { return false };
    let media_type = line.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json") || media_type == FORM
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

    #[test]
    fn an_empty_object_says_as_much_as_no_body() {
        for nothing in ["", "{}", " { }\n", "null"] {
            assert!(says_nothing(nothing.as_bytes()), "{nothing:?}");
        }
        for something in [" ", "{\"a\":1}", "[]", "0", "false", "\"\"", "{}{}", "{", "a=b"] {
            assert!(!says_nothing(something.as_bytes()), "{something:?}");
        }
    }

    #[test]
    fn what_is_called_something_else_is_no_json() {
        let may_be = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(CONTENT_TYPE, line.parse().unwrap());
            }
            may_be_json(&headers)
        };
        for json in
            [&[][..], &["application/json"], &["Application/JSON; charset=utf-8"], &["application/x+json"], &[FORM]]
        {
            assert!(may_be(json), "{json:?}");
        }
        for other in [&["text/plain"][..], &["multipart/form-data"], &[""], &["application/json", "text/plain"]] {
            assert!(!may_be(other), "{other:?}");
        }
    }

    #[test]
    fn escapes_stand_for_utf_8() {
        for good in ["", "a=b", "a=%C3%A9", "a=100%", "a=%zz", "a=%4", "a=%41%", "a=%+1", "%EF%BF%BD"] {
            assert!(is_utf8(good), "{good}");
        }
        for bad in ["a=%ff", "%C3=1", "a=%C3%", "a=%E9t%E9", "a=%c0%80", "a=%ED%A0%80"] {
            assert!(!is_utf8(bad), "{bad}");
        }
    }
}
