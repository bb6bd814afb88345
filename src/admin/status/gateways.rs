//! The gateways on this store.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::record::StatusRecord;
use super::traffic::Traffic;
use crate::admin::AdminState;
use crate::admin::shared::Others;
use crate::admin::shared::STATUS;
use crate::admin::shared::Scope;
use crate::admin::shared::history;
use crate::clock::Timestamp;
use crate::clock::wall;
use crate::record::history::HistoryChunk;
use crate::record::history::HistoryReport;
use crate::store::shared_records::GatewayRecords;
use crate::store::shared_records::Standing;

/// A gateway on the store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Gateway)]
pub(super) struct GatewayResponse {
    pub(super) id: String,
    #[schema(inline)]
    pub(super) state: GatewayWord,
    version: String,
    /// When it started.
    #[schema(format = DateTime)]
    since: String,
    /// When it was heard of last.
    #[schema(format = DateTime)]
    last_seen: String,
    /// Its own last minute. Of a gateway that is not up: what it had written of that minute.
    last_minute: Traffic,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum GatewayWord {
    Up,
    /// It finishes its last requests.
    Draining,
    /// It has finished them and is no more.
    Ended,
    /// It did not answer within 300 ms.
    Missing,
    /// It answers no question for 10 s and did not say that it would end: it crashed, or does not reach Redis.
    Gone,
}

/// The gateways, and whether all that are there are among them and have answered.
pub(super) struct KnownGateways {
    /// This one first.
    pub(super) gateways: Vec<GatewayResponse>,
    pub(super) is_complete: bool,
}

impl KnownGateways {
    /// Asks the other gateways, for a little more than 300 ms at most.
    pub(super) async fn ask(state: &AdminState) -> Self {
        let asked = wall();
        let mut fields = vec![STATUS.to_owned()];
        fields.extend(last_chunks(asked).map(history));
        let others = Others::ask(state, &fields, None).await;
        let now = wall();
        let last_minute = Traffic::of(&state.metrics.history().report(1, now));
        let own =
            response(&state.identity.id, StatusRecord::of(state), last_minute, (Standing::Up, Duration::ZERO), now);
        let mut gateways: Vec<GatewayResponse> =
            others.gateways.iter().filter_map(|records| of_records(records, now)).collect();
        gateways.sort_by(|one, other| one.id.cmp(&other.id));
        gateways.insert(0, own);
        let is_missing = |gateway: &GatewayResponse| gateway.state == GatewayWord::Missing;
        let is_complete = others.scope == Scope::All && !gateways.iter().any(is_missing);
        Self { gateways, is_complete }
    }

    /// What all of them forwarded and denied in the last minute.
    pub(super) fn last_minute(&self) -> Traffic {
        self.gateways.iter().fold(Traffic::default(), |sum, gateway| sum + gateway.last_minute)
    }
}

/// The parts of the history that the last minute is in.
fn last_chunks(now: Timestamp) -> RangeInclusive<u64> {
    HistoryChunk::number(HistoryReport::of_last(1, now).from)..=HistoryChunk::number(now)
}

fn of_records(records: &GatewayRecords, now: Timestamp) -> Option<GatewayResponse> {
    let GatewayRecords { gateway, standing, age, contents } = records;
    let (status, chunks) = contents.split_first()?;
    let record = StatusRecord::from_bytes(status.as_deref()?)?;
    let mut last_minute = HistoryReport::of_last(1, now);
    for chunk in chunks.iter().flatten().filter_map(|chunk| HistoryChunk::from_bytes(chunk)) {
        last_minute.add(&chunk);
    }
    // One that has answered was heard of just now.
    let age = if *standing == Standing::Up { Duration::ZERO } else { *age };
    Some(response(gateway, record, Traffic::of(&last_minute), (*standing, age), now))
}

fn response(
    id: &str,
    record: StatusRecord,
    last_minute: Traffic,
    (standing, age): (Standing, Duration),
    now: Timestamp,
) -> GatewayResponse {
    let state = match standing {
        Standing::Up if record.draining => GatewayWord::Draining,
        Standing::Up => GatewayWord::Up,
        Standing::Missing => GatewayWord::Missing,
        Standing::Gone => GatewayWord::Gone,
        Standing::Ended => GatewayWord::Ended,
    };
    let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    GatewayResponse {
        id: id.to_owned(),
        state,
        version: record.version,
        since: record.since,
        last_seen: Timestamp::from_micros(now.as_micros().saturating_sub(age)).to_string(),
        last_minute,
    }
}
