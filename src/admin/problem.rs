//! Errors of the admin listener as problem documents.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, StatusCode, Uri};

use crate::api::problem::{Mistake, ProblemDocument};
use crate::listen::Refusal;
use crate::rules::decision::operator::InvalidLimitQuery;
use crate::wire::head::{Fields, KnownName};

/// Why a request failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Problem {
    status: StatusCode,
    detail: Cow<'static, str>,
    mistakes: Option<Vec<Mistake>>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        let mut detail = detail.into();
        if let Some((end, _)) = detail.char_indices().nth(MAX_DETAIL) {
            detail = format!("{}…", &detail[..end]).into();
        }
        Self { status, detail, mistakes: None }
    }

    /// 400: the request is wrong in a way that `detail` explains.
    pub(super) fn bad_request(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Says what is wrong in the configuration.
    pub(super) fn with_mistakes(self, mistakes: Vec<Mistake>) -> Self {
        Self { mistakes: Some(mistakes), ..self }
    }

    /// The request names a limit or a key that does not exist.
    pub(super) fn invalid_query(error: &InvalidLimitQuery) -> Self {
        let status = match error {
            InvalidLimitQuery::NoSuchLimit { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}

impl Problem {
    /// As JSON.
    fn document(&self) -> Vec<u8> {
        let document = ProblemDocument {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or_default().to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.to_string(),
            mistakes: self.mistakes.clone(),
        };
        serde_json::to_vec(&document).expect("texts are JSON")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let headers = [(CONTENT_TYPE, PROBLEM_TYPE), (CACHE_CONTROL, NO_STORE)];
        (self.status, headers, self.document()).into_response()
    }
}

/// The answer to an invalid head.
impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let mut fields = Fields::default();
        fields.append(KnownName::CONTENT_TYPE, PROBLEM_TYPE.as_bytes());
        fields.append(KnownName::CACHE_CONTROL, NO_STORE.as_bytes());
        Self { fields, body: problem.document().into() }
    }
}

/// In characters: a detail may repeat a value that was sent, however long it was.
const MAX_DETAIL: usize = 500;

const NO_STORE: &str = "no-store";

/// The media type of problem documents.
pub(super) const PROBLEM_TYPE: &str = "application/problem+json";

pub(super) async fn not_found(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{} does not answer {method}", uri.path()))
}
