//! Which gateways did not answer.

use std::convert::Infallible;

use axum::response::IntoResponseParts;
use axum::response::ResponseParts;
use http::HeaderName;
use http::HeaderValue;

/// The ids of the gateways that did not answer in time. Where there are any, they are a header of the answer,
/// `X-Portcullis-Missing`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::admin) struct Missing(pub(in crate::admin) Vec<String>);

impl IntoResponseParts for Missing {
    type Error = Infallible;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Infallible> {
        let Self(ids) = self;
        let named = ids.get(..MOST_NAMED).unwrap_or(&ids).join(", ");
        // An id that is no header value is none that a gateway gives itself.
        if let Some(value) = HeaderValue::from_str(&named).ok().filter(|value| !value.is_empty()) {
            parts.headers_mut().insert(NAME, value);
        }
        Ok(parts)
    }
}

const NAME: HeaderName = HeaderName::from_static("x-portcullis-missing");

/// Clients bound the size of headers.
const MOST_NAMED: usize = 100;
