//! What a gateway tells the others about itself.

use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use super::traffic::Traffic;
use crate::admin::AdminState;
use crate::store::RecordKind;

/// One record for each gateway. It is kept for a while after its gateway has gone, so that others can say so.
pub(super) const STATUS: RecordKind = RecordKind { name: "status", kept: Duration::from_secs(3600) };

/// How often it is written.
pub(super) const WRITTEN_EVERY: Duration = Duration::from_secs(2);

/// A gateway whose record is older has gone.
pub(super) const GONE_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct StatusRecord {
    pub(super) version: String,
    /// RFC 3339.
    pub(super) since: String,
    pub(super) draining: bool,
    pub(super) last_minute: Traffic,
}

impl StatusRecord {
    /// Of this gateway, now.
    pub(super) fn of(state: &AdminState) -> Self {
        Self {
            version: env!("PORTCULLIS_VERSION").to_owned(),
            since: state.identity.since.to_string(),
            draining: state.is_draining(),
            last_minute: Traffic::of_last_minute(&state.metrics),
        }
    }
}
