//! What several gateways on one Redis know together: each writes for the others what it has counted and denied, every four
//! seconds where that has changed and at once when one of them asks. Any of them answers for all, for an hour also for one
//! that has gone.
//!
//! An answer names the gateways that did not answer in time. While Redis does not answer, a gateway answers for itself, and
//! says so.

mod publish;

use std::convert::Infallible;
use std::time::Duration;

use axum::response::{IntoResponseParts, ResponseParts};
use http::{HeaderName, HeaderValue};

pub(super) use self::publish::{
    ATTACKS, BUSY_KEYS_PARTS, FAILURES, HISTORY_PARTS, PublishedStories, SIGN_INS, STATUS, StatusRecord, busy_keys,
    history, story,
};
pub use self::publish::{publish_last_records, publish_records};
use crate::admin::AdminState;
use crate::store::shared_records::{GatewayRecords, Standing};

/// For how long a gateway that has gone is named.
const KNOWN_FOR: Duration = Duration::from_secs(3600);

const MISSING_HEADER: HeaderName = HeaderName::from_static("x-portcullis-missing");

/// The answers of the other gateways on this store.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Others {
    pub(in crate::admin) scope: Scope,
    /// Those that were here within the last hour.
    pub(in crate::admin) gateways: Vec<GatewayRecords>,
}

impl Others {
    /// Asks them for these fields, for a little more than 300 ms at most. `id` is a request whose story is wanted.
    pub(in crate::admin) async fn ask(state: &AdminState, fields: &[String], id: Option<&str>) -> Self {
        let Some(records) = &state.records else { return Self { scope: Scope::All, gateways: Vec::new() } };
        match records.ask(fields, id).await {
            Ok(mut gateways) => {
                gateways.retain(|gateway| gateway.standing == Standing::Up || gateway.age <= KNOWN_FOR);
                Self { scope: Scope::All, gateways }
            }
            Err(_) => Self { scope: Scope::ThisGateway, gateways: Vec::new() },
        }
    }

    /// Those that did not answer, and did not end in order.
    pub(in crate::admin) fn missing(&self) -> Missing {
        let is_missing = |gateway: &&GatewayRecords| matches!(gateway.standing, Standing::Missing | Standing::Gone);
        Missing(self.gateways.iter().filter(is_missing).map(|gateway| gateway.gateway.clone()).collect())
    }

    /// The contents of all fields of all of them.
    pub(in crate::admin) fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.gateways.iter().flat_map(|gateway| gateway.contents.iter().flatten().map(Vec::as_slice))
    }
}

// Which gateways did not answer.

/// Clients bound the size of headers.
const MOST_NAMED: usize = 100;

const SCOPE_HEADER: HeaderName = HeaderName::from_static("x-portcullis-scope");

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
            parts.headers_mut().insert(MISSING_HEADER, value);
        }
        Ok(parts)
    }
}

// For whom an answer speaks.

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
        parts.headers_mut().insert(SCOPE_HEADER, HeaderValue::from_static(self.as_str()));
        Ok(parts)
    }
}
