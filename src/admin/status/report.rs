//! Tells the other gateways on the store how this one is.

use std::sync::Arc;

use tokio::time::MissedTickBehavior;
use tokio::time::interval;
use tracing::warn;

use super::record::STATUS;
use super::record::StatusRecord;
use super::record::WRITTEN_EVERY;
use crate::admin::AdminState;
use crate::store::SharedRecords;
use crate::store::redis::RecordsUnavailable;

/// Writes the record of this gateway every two seconds, while somebody reads the records. Returns at once where the store is not shared, otherwise never.
pub async fn share(state: Arc<AdminState>) {
    let Some(records) = &state.records else { return };
    let mut ticks = interval(WRITTEN_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_refused = false;
    loop {
        ticks.tick().await;
        if !records.are_read().await {
            continue;
        }
        // An outage is logged where decisions notice it.
        let refused = write(records, &state).await == Err(RecordsUnavailable::Refused);
        if refused && !is_refused {
            warn!(
                "redis does not let this gateway write what others are to know of it: each gateway answers only for \
                 itself. Allow its user the commands that docs/src/redis.md lists"
            );
        }
        is_refused = refused;
    }
}

/// Writes the last record of a gateway that has drained, so that the others know that it ended in order. Takes 300 ms at
/// most.
pub async fn share_end(state: &AdminState) {
    if let Some(records) = &state.records {
        // Without Redis the others will think that it has gone.
        let _ = write(records, state).await;
    }
}

async fn write(records: &SharedRecords, state: &AdminState) -> Result<(), RecordsUnavailable> {
    let record = serde_json::to_vec(&StatusRecord::of(state)).expect("texts and numbers are JSON");
    records.write(STATUS, 0, &record).await
}
