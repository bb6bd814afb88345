//! The kinds of records, and how they are told apart.

use std::time::Duration;

use crate::store::RecordKind;

/// Ten minutes of the history of a gateway. The part is the number of the ten minutes modulo [`HISTORY_PARTS`].
pub(in crate::admin) const HISTORY: RecordKind = RecordKind { name: "history", kept: KEPT };

/// The counts by key of a minute. The part is the number of the minute modulo [`BUSY_KEYS_PARTS`].
pub(in crate::admin) const BUSY_KEYS: RecordKind = RecordKind { name: "busy_keys", kept: KEPT };

/// The story of a request, by its id.
pub(in crate::admin) const STORIES: RecordKind = RecordKind { name: "requests", kept: KEPT };

/// More than an hour has, so that no record is written over within the hour.
pub(super) const HISTORY_PARTS: u64 = 8;
pub(super) const BUSY_KEYS_PARTS: u64 = 64;

/// The hour, and the ten minutes that a record of the history is about.
const KEPT: Duration = Duration::from_secs(70 * 60);
