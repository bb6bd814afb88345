//! For whom an answer speaks.

use std::convert::Infallible;

use axum::response::IntoResponseParts;
use axum::response::ResponseParts;
use http::HeaderName;
use http::HeaderValue;

/// For whom an answer speaks. It is a header of the answer, `X-Portcullis-Scope`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::admin) enum Scope {
    /// All gateways on this store.
    All,
    /// Only this gateway, because Redis does not answer.
    ThisGateway,
}

impl Scope {
    pub(in crate::admin) fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::ThisGateway => "this_gateway",
        }
    }
}

impl IntoResponseParts for Scope {
    type Error = Infallible;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Infallible> {
        parts.headers_mut().insert(NAME, HeaderValue::from_static(self.as_str()));
        Ok(parts)
    }
}

const NAME: HeaderName = HeaderName::from_static("x-portcullis-scope");
