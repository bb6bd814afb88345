//! The gateways on this store.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::record::GONE_AFTER;
use super::record::STATUS;
use super::record::StatusRecord;
use super::traffic::Traffic;
use crate::admin::AdminState;
use crate::clock::Timestamp;
use crate::clock::wall;
use crate::store::SharedRecord;

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
    /// Its own last minute; zeros for a gateway that has ended or gone.
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
    /// It was not heard of for 10 s and did not say that it would end: it crashed, or does not reach Redis.
    Gone,
}

/// The gateways, and whether there may be others that Redis did not tell of.
pub(super) struct KnownGateways {
    /// This one first.
    pub(super) gateways: Vec<GatewayResponse>,
    pub(super) is_complete: bool,
}

impl KnownGateways {
    /// Asks Redis, for 300 ms at most.
    pub(super) async fn ask(state: &AdminState) -> Self {
        let now = wall();
        let own = response(&state.identity.id, StatusRecord::of(state), Duration::ZERO, now);
        let read = match &state.records {
            None => Ok(Vec::new()),
            Some(records) => records.read(STATUS).await,
        };
        let is_complete = read.is_ok();
        let mut others: Vec<GatewayResponse> =
            read.unwrap_or_default().iter().filter_map(|record| of_record(record, now)).collect();
        others.retain(|other| *other.id != *state.identity.id);
        others.sort_by(|one, other| one.id.cmp(&other.id));
        others.insert(0, own);
        Self { gateways: others, is_complete }
    }

    /// What all of them forwarded and denied in the last minute.
    pub(super) fn last_minute(&self) -> Traffic {
        self.gateways.iter().fold(Traffic::default(), |sum, gateway| sum + gateway.last_minute)
    }
}

fn of_record(SharedRecord { gateway, age, content, .. }: &SharedRecord, now: Timestamp) -> Option<GatewayResponse> {
    // A gateway of another version may write another record.
    let record = serde_json::from_slice(content).ok()?;
    Some(response(gateway, record, *age, now))
}

fn response(id: &str, record: StatusRecord, age: Duration, now: Timestamp) -> GatewayResponse {
    let state = match record.draining {
        true if age > GONE_AFTER => GatewayWord::Ended,
        false if age > GONE_AFTER => GatewayWord::Gone,
        true => GatewayWord::Draining,
        false => GatewayWord::Up,
    };
    let is_over = matches!(state, GatewayWord::Ended | GatewayWord::Gone);
    let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    GatewayResponse {
        id: id.to_owned(),
        state,
        version: record.version,
        since: record.since,
        last_seen: Timestamp::from_micros(now.as_micros().saturating_sub(age)).to_string(),
        last_minute: if is_over { Traffic::default() } else { record.last_minute },
    }
}
