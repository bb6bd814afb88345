//! What a gateway tells the others about itself.

use serde::Deserialize;
use serde::Serialize;

use crate::admin::AdminState;

/// How a gateway is, as it tells the others.
#[derive(Debug, Deserialize, Serialize)]
pub(in crate::admin) struct StatusRecord {
    pub(super) version: String,
    /// RFC 3339.
    pub(super) since: String,
    pub(super) draining: bool,
}

impl StatusRecord {
    /// Of this gateway, now.
    pub(in crate::admin) fn of(state: &AdminState) -> Self {
        Self {
            version: env!("PORTCULLIS_VERSION").to_owned(),
            since: state.identity.since.to_string(),
            draining: state.is_draining(),
        }
    }

    pub(in crate::admin) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    /// `None`: another version has written it.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}
