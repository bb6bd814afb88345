//! Reads the JSON object that a request carries.

use axum::body::Body;
use http::HeaderMap;
use http::Request;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use super::body;
use super::body::UnreadBody;
use super::problem::Problem;

/// The object in the body of a request. `expected` says what it should be. What was sent is not repeated: it may be a token.
pub(super) async fn read<T: DeserializeOwned>(request: Request<Body>, expected: &str) -> Result<T, Problem> {
    if !may_be_json(request.headers()) {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, NOT_JSON));
    }
    let body = body::read(request.into_body(), MAX_BODY).await.map_err(|unread| match unread {
        UnreadBody::TooLong => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, TOO_LONG),
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

/// In bytes: more than any token, and than the key of a ban.
const MAX_BODY: usize = 16 * 1024;

const FORM: &str = "application/x-www-form-urlencoded";

const NOT_JSON: &str = "the body is JSON: `content-type: application/json`";
const TOO_LONG: &str = "the body has at most 16 KiB";

#[cfg(test)]
mod tests {
    use super::*;

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
}
