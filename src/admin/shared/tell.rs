//! Tells the other gateways on the store what this one has counted and denied.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio::time::interval;
use tokio::time::timeout;

use super::kinds::BUSY_KEYS;
use super::kinds::BUSY_KEYS_PARTS;
use super::kinds::HISTORY;
use super::kinds::HISTORY_PARTS;
use crate::admin::AdminState;
use crate::clock::Timestamp;
use crate::clock::wall;
use crate::record::heavy_keys::MinuteRecord;
use crate::record::history::HistoryChunk;
use crate::store::SharedRecords;
use crate::store::redis::RecordsUnavailable;

/// Writes what has changed every two seconds, while somebody reads it. Returns at once where the store is not shared, otherwise never.
pub async fn tell_others(state: Arc<AdminState>) {
    let Some(records) = &state.records else { return };
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // An outage is logged where decisions notice it. What was not written is written when Redis is back.
        if records.are_read().await {
            let _ = tell(&state, records).await;
        }
    }
}

/// Writes what has changed since, when a gateway has drained. Takes two seconds at most.
pub async fn tell_the_rest(state: &AdminState) {
    if let Some(records) = &state.records {
        drop(timeout(LAST_TIMEOUT, tell(state, records)).await);
    }
}

async fn tell(state: &AdminState, records: &SharedRecords) -> Result<(), RecordsUnavailable> {
    tell_counts(state, records).await?;
    state.told_stories.lock().await.tell(&state.kept_requests, records).await
}

/// Writes the current ten minutes of the history and the current minute of the counts by key, and those before once more
/// where they have just ended.
async fn tell_counts(state: &AdminState, records: &SharedRecords) -> Result<(), RecordsUnavailable> {
    let now = wall();
    let history = state.metrics.history();
    history.read_counters(now);
    let just_ended = Timestamp::from_micros(now.as_micros().saturating_sub(JUST_ENDED_MICROS));
    let (ended, current) = (HistoryChunk::number(just_ended), HistoryChunk::number(now));
    for number in ended..=current {
        records.write(HISTORY, number % HISTORY_PARTS, &history.chunk(number).to_bytes()).await?;
    }
    let (ended, current) = (MinuteRecord::number(just_ended), MinuteRecord::number(now));
    for number in ended..=current {
        records.write(BUSY_KEYS, number % BUSY_KEYS_PARTS, &state.key_tables.minute(number).to_bytes()).await?;
    }
    Ok(())
}

/// Others know within five seconds what happened.
const INTERVAL: Duration = Duration::from_secs(2);

/// Longer than it takes from one write to the next.
const JUST_ENDED_MICROS: u64 = 5_000_000;

/// How long the exit waits for Redis.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);
