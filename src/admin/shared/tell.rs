//! Tells the other gateways on the store what this one has counted and denied.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::Instant;
use tokio::time::MissedTickBehavior;
use tokio::time::interval;
use tokio::time::sleep;
use tokio::time::timeout_at;
use tracing::warn;

use super::fields::BUSY_KEYS_PARTS;
use super::fields::HISTORY_PARTS;
use super::fields::STATUS;
use super::fields::busy_keys;
use super::fields::history;
use super::told_stories::Untold;
use crate::admin::AdminState;
use crate::admin::status::StatusRecord;
use crate::clock::Timestamp;
use crate::clock::wall;
use crate::record::heavy_keys::MinuteRecord;
use crate::record::history::HistoryChunk;
use crate::store::SharedRecords;
use crate::store::redis::RecordsUnavailable;
use crate::store::shared_records::Field;
use crate::store::shared_records::QuestionsToAnswer;

/// Writes what has changed every four seconds, and at once when a gateway asks; many stories in batches. Returns at once where
/// the store is not shared, otherwise never.
pub async fn tell_others(state: Arc<AdminState>) {
    let Some(records) = &state.records else { return };
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut is_refused, mut has_backlog) = (false, false);
    loop {
        let occasion = tokio::select! {
            _ = ticks.tick() => Occasion::Tick,
            () = records.write_requested() => Occasion::Question,
            () = sleep(BATCH_PACE), if has_backlog => Occasion::Backlog,
        };
        // An outage is logged where decisions notice it. What was not written is written when Redis is back.
        let told = tell(&state, records, occasion).await;
        if told == Err(RecordsUnavailable::Away) {
            ticks.reset_after(RETRY);
        }
        has_backlog = told == Ok(Told::Part);
        let refused = told == Err(RecordsUnavailable::Refused);
        if refused && !is_refused {
            warn!(
                "redis does not let this gateway write what others are to know of it: each gateway answers only for \
                 itself. Allow its user the commands that docs/src/redis.md lists"
            );
        }
        is_refused = refused;
        if occasion == Occasion::Question {
            sleep(ANSWER_PACE).await;
        }
    }
}

/// Writes what has changed since when a gateway has drained, all its stories, and that it has ended in order. Takes two
/// seconds at most.
pub async fn tell_the_rest(state: &AdminState) {
    if let Some(records) = &state.records {
        let end = Instant::now() + LAST_TIMEOUT;
        drop(timeout_at(end - KEPT_FOR_THE_END, tell_all(state, records)).await);
        records.end();
        // Without Redis the others will think that it has gone.
        drop(timeout_at(end, tell(state, records, Occasion::Tick)).await);
    }
}

async fn tell_all(state: &AdminState, records: &SharedRecords) -> Result<(), RecordsUnavailable> {
    let mut told = tell(state, records, Occasion::Tick).await?;
    while told == Told::Part {
        told = tell(state, records, Occasion::Backlog).await?;
    }
    Ok(())
}

/// Why something is written now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Occasion {
    Tick,
    /// Gateways have asked. The stories that nobody asks for can wait where some were told a moment ago.
    Question,
    /// There were more stories than are written at once.
    Backlog,
}

/// How much was told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Told {
    All,
    /// Of the stories only some.
    Part,
}

async fn tell(state: &AdminState, records: &SharedRecords, occasion: Occasion) -> Result<Told, RecordsUnavailable> {
    let mut told = state.told_stories.lock().await;
    let begins_anew = records.begins_anew().await?;
    if begins_anew {
        told.forget();
    }
    let (mut fields, mut questions) = (Vec::new(), QuestionsToAnswer::default());
    if begins_anew || occasion != Occasion::Backlog {
        questions = records.questions_to_answer();
        fields = counts(state, begins_anew);
        fields.push(Field { name: STATUS.to_owned(), content: StatusRecord::of(state).to_bytes() });
        if occasion != Occasion::Question || !told.was_told_within(INTERVAL) {
            told.look(&state.kept_requests);
        }
    }
    let mut untold = vec![told.next(&state.kept_requests, &questions.ids)];
    while told.has_backlog() && untold.len() < PARTS_AT_ONCE {
        yield_now().await;
        untold.push(told.next(&state.kept_requests, &[]));
    }
    fields.extend(untold.iter().flat_map(Untold::fields));
    records.write(fields, &questions).await?;
    for part in untold {
        told.note(part);
    }
    let surplus = told.take_surplus(wall());
    for names in surplus.chunks(MOST_REMOVED) {
        records.remove(names).await?;
    }
    Ok(if told.has_backlog() { Told::Part } else { Told::All })
}

/// The history and the counts by key: the current part of each and the one before where that has just ended, or all of the
/// last hour.
fn counts(state: &AdminState, of_last_hour: bool) -> Vec<Field> {
    let now = wall();
    let kept = state.metrics.history();
    kept.read_counters(now);
    let just_ended = Timestamp::from_micros(now.as_micros().saturating_sub(JUST_ENDED_MICROS));
    let since = |number: fn(Timestamp) -> u64, parts: u64| {
        let oldest = if of_last_hour { number(now).saturating_sub(parts - 1) } else { number(just_ended) };
        oldest..=number(now)
    };
    let chunk = |number| Field { name: history(number), content: kept.chunk(number).to_bytes() };
    let minute = |number| Field { name: busy_keys(number), content: state.key_tables.minute(number).to_bytes() };
    let chunks = since(HistoryChunk::number, HISTORY_PARTS).map(chunk);
    chunks.chain(since(MinuteRecord::number, BUSY_KEYS_PARTS).map(minute)).collect()
}

/// Others know what happened within five seconds, also when nobody has asked before this gateway died.
const INTERVAL: Duration = Duration::from_secs(4);

/// When Redis is tried again. While it is known to be down, that costs nothing.
const RETRY: Duration = Duration::from_millis(500);

/// Longer than it takes from one write to the next.
const JUST_ENDED_MICROS: u64 = 15_000_000;

/// Questions that arrive meanwhile are answered together.
const ANSWER_PACE: Duration = Duration::from_millis(20);

/// Between two commands with stories Redis decides for others.
const BATCH_PACE: Duration = Duration::from_millis(100);

/// How many parts of the stories one command writes. Between two of them the thread does its other work.
const PARTS_AT_ONCE: usize = 15;

/// How many stories one command removes. Redis does nothing else meanwhile.
const MOST_REMOVED: usize = 1000;

/// How long the exit waits for Redis, and how much of that is kept for the last word.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);
const KEPT_FOR_THE_END: Duration = Duration::from_millis(500);
