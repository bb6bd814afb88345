//! Refuses parameters and bodies that an operation does not take, so that a mistake does not silently mean something else.
//! What an operation takes is what its description names, so no operation can be forgotten.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::MatchedPath;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use http::Method;
use http::Request;
use http_body::Body as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::Operation;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::path::ParameterIn;

use super::auth::PathAccess;
use super::body;
use super::body::UnreadBody;
use super::operations::operations;
use super::problem::Problem;

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
        let empty = body::read(body, 0).await.map_err(|unread| match unread {
            UnreadBody::TooLong => Problem::bad_request(NO_BODY),
            unread => unread.into(),
        })?;
        Ok(Request::from_parts(head, Body::from(empty)))
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

const NO_PARAMETERS: &str = "there are no parameters here";
const NOT_UTF8: &str = "an escape in the query is not UTF-8";
const NO_BODY: &str = "there is no body here";

#[cfg(test)]
mod tests {
    use super::*;

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
