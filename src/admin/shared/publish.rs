//! Publishes to the other gateways on the store what this one has counted and denied.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::yield_now;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};
use tracing::warn;

use crate::admin::AdminState;
use crate::record::heavy_keys::MinuteRecord;
use crate::record::history::HistoryChunk;
use crate::record::kept_requests::{KeptRequest, KeptRequests, RequestStory, Viewer};
use crate::store::SharedRecords;
use crate::store::redis::RecordsUnavailable;
use crate::store::shared_records::{Field, QuestionsToAnswer};
use crate::words::clock::{Timestamp, wall};

/// Others know what happened within five seconds, also when nobody has asked before this gateway died.
const INTERVAL: Duration = Duration::from_secs(4);

/// A sign-in that follows failures on another gateway is an event within five seconds.
const FAILURES_INTERVAL: Duration = Duration::from_secs(1);

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

/// Writes what has changed every four seconds, and at once when a gateway asks; many stories in batches. Returns at once where
/// the store is not shared, otherwise never.
pub async fn publish_records(state: Arc<AdminState>) {
    let Some(records) = &state.records else { return };
    let (mut ticks, mut failure_ticks) = (interval(INTERVAL), interval(FAILURES_INTERVAL));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    failure_ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut is_refused, mut has_backlog) = (false, false);
    loop {
        let occasion = tokio::select! {
            _ = ticks.tick() => Occasion::Tick,
            _ = failure_ticks.tick() => Occasion::Failures,
            () = records.write_requested() => Occasion::Question,
            () = sleep(BATCH_PACE), if has_backlog => Occasion::Backlog,
        };
        // An outage is logged where decisions notice it. What was not written is written when Redis is back.
        let published = publish(&state, records, occasion).await;
        if published == Err(RecordsUnavailable::Away) {
            ticks.reset_after(RETRY);
        }
        has_backlog = published == Ok(Published::Part) || has_backlog && occasion == Occasion::Failures;
        let refused = published == Err(RecordsUnavailable::Refused);
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
pub async fn publish_last_records(state: &AdminState) {
    if let Some(records) = &state.records {
        let end = Instant::now() + LAST_TIMEOUT;
        drop(timeout_at(end - KEPT_FOR_THE_END, publish_all(state, records)).await);
        records.end();
        // Without Redis the others will think that it has gone.
        drop(timeout_at(end, publish(state, records, Occasion::Tick)).await);
    }
}

async fn publish_all(state: &AdminState, records: &SharedRecords) -> Result<(), RecordsUnavailable> {
    let mut published = publish(state, records, Occasion::Tick).await?;
    while published == Published::Part {
        published = publish(state, records, Occasion::Backlog).await?;
    }
    Ok(())
}

/// Why something is written now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Occasion {
    Tick,
    /// Others compare their successes with the failures here.
    Failures,
    /// Gateways have asked. The stories that nobody asks for can wait where some were published a moment ago.
    Question,
    /// There were more stories than are written at once.
    Backlog,
}

/// How much was published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Published {
    All,
    /// Of the stories only some.
    Part,
}

async fn publish(
    state: &AdminState,
    records: &SharedRecords,
    occasion: Occasion,
) -> Result<Published, RecordsUnavailable> {
    let mut stories = state.published_stories.lock().await;
    let begins_anew = records.begins_anew().await?;
    if begins_anew {
        stories.forget();
    }
    if occasion == Occasion::Failures && !begins_anew {
        records.write(vec![failures(state)], &QuestionsToAnswer::default()).await?;
        return Ok(Published::All);
    }
    let (mut fields, mut questions) = (Vec::new(), QuestionsToAnswer::default());
    if begins_anew || occasion != Occasion::Backlog {
        questions = records.questions_to_answer();
        fields = counts(state, begins_anew);
        fields.push(Field { name: STATUS.to_owned(), content: StatusRecord::of(state).to_bytes() });
        fields.push(Field { name: ATTACKS.to_owned(), content: state.attacks.record().to_bytes() });
        fields.push(Field { name: SIGN_INS.to_owned(), content: sign_ins(state) });
        fields.push(failures(state));
        if occasion != Occasion::Question || !stories.were_published_within(INTERVAL) {
            stories.look(&state.kept_requests);
        }
    }
    let mut batches = vec![stories.next(&state.kept_requests, &questions.ids)];
    while stories.has_backlog() && batches.len() < PARTS_AT_ONCE {
        yield_now().await;
        batches.push(stories.next(&state.kept_requests, &[]));
    }
    fields.extend(batches.iter().flat_map(StoryBatch::fields));
    records.write(fields, &questions).await?;
    for batch in batches {
        stories.note(batch);
    }
    let surplus = stories.take_surplus(wall());
    for names in surplus.chunks(MOST_REMOVED) {
        records.remove(names).await?;
    }
    Ok(if stories.has_backlog() { Published::Part } else { Published::All })
}

/// Which accounts failed lately.
fn failures(state: &AdminState) -> Field {
    let failures = state.attacks.failures_record(wall());
    let content = postcard::to_stdvec(&failures).expect("hashes and counts can be written");
    Field { name: FAILURES.to_owned(), content }
}

/// The events of sign-ins after failures, with masked names.
fn sign_ins(state: &AdminState) -> Vec<u8> {
    let events = state.event_bus.past().sign_ins();
    serde_json::to_vec(&events.iter().map(|event| json!(**event)).collect::<Vec<_>>()).expect("events are JSON")
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

// The names of the fields that a gateway writes for the others.

/// How it is.
pub(in crate::admin) const STATUS: &str = "status";

/// What is attacked there.
pub(in crate::admin) const ATTACKS: &str = "attacks";

/// Which accounts failed there.
pub(in crate::admin) const FAILURES: &str = "failures";

/// Who signed in there after failures.
pub(in crate::admin) const SIGN_INS: &str = "sign_ins";

/// So many tens of minutes of the history are kept, and so many minutes of the counts by key: more than an hour has, so that
/// none is written over within the hour.
pub(in crate::admin) const HISTORY_PARTS: u64 = 8;

pub(in crate::admin) const BUSY_KEYS_PARTS: u64 = 64;

/// Ten minutes of its history, by their number.
pub(in crate::admin) fn history(number: u64) -> String {
    format!("history/{}", number % HISTORY_PARTS)
}

/// Its counts by key of one minute, by the number of the minute.
pub(in crate::admin) fn busy_keys(number: u64) -> String {
    format!("busy_keys/{}", number % BUSY_KEYS_PARTS)
}

/// The story of a request.
pub(in crate::admin) fn story(id: &str) -> String {
    format!("request/{id}")
}

// The stories that this gateway has published.

/// So many take a few milliseconds of the thread that also reads signals and answers the admin API.
const MOST_AT_ONCE: usize = 500;

const MAX_BYTES: usize = 512 << 10;

/// How many stories of one gateway are in Redis, the newest 10,000 among them, and how many more before some are removed.
const MOST_KEPT: usize = 12_000;

const SLACK: usize = 2000;

/// A client keeps so many while others have more.
const FEW: usize = 4;

/// A story that is older is removed, when the oldest is a good deal older.
const KEPT: Duration = Duration::from_secs(3600);

const REMOVED_AFTER: Duration = Duration::from_secs(80 * 60);

/// The requests whose stories are in Redis, and those whose stories are to be written there next.
#[derive(Debug, Default)]
pub(in crate::admin) struct PublishedStories {
    /// By the number of the request, so that the oldest come first. Redis may have lost some of them.
    published: BTreeMap<u64, PublishedStory>,
    of_client: HashMap<IpAddr, usize>,
    /// The numbers of the requests in the ring that need not be published: they were, since Redis was empty last.
    done: HashSet<u64>,
    /// The numbers of those that are to be published, the most urgent last.
    backlog: Vec<u64>,
    /// The lowest number of the newest requests, which stay in Redis whoever sent them.
    first_of_newest: u64,
    /// When stories were published last that nobody had asked for.
    last_published: Option<Instant>,
}

#[derive(Debug)]
struct PublishedStory {
    id: Box<str>,
    client: IpAddr,
    time: Timestamp,
}

/// Stories that are written next, by one command or as a part of it.
#[derive(Debug)]
pub(super) struct StoryBatch {
    requests: Vec<(KeptRequest, Field)>,
    /// Whether there are some that nobody asked for.
    has_new: bool,
}

impl PublishedStories {
    /// Redis has none of them any more, or may have none.
    pub(super) fn forget(&mut self) {
        self.done.clear();
        self.backlog.clear();
        self.last_published = None;
    }

    /// Whether stories were published within this time that nobody had asked for.
    pub(super) fn were_published_within(&self, span: Duration) -> bool {
        self.last_published.is_some_and(|last| last.elapsed() < span)
    }

    /// Whether some of the stories that were found are not published yet.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Finds all stories that are not published yet, the newest of each client first.
    pub(super) fn look(&mut self, kept: &KeptRequests) {
        self.first_of_newest = kept.first_of_newest();
        let mut still_kept = HashSet::new();
        self.backlog = kept.newest_of_each_client_first(|number| {
            let is_done = self.done.contains(&number);
            if is_done {
                still_kept.insert(number);
            }
            !is_done
        });
        self.backlog.reverse();
        self.done = still_kept;
    }

    /// The stories that were asked for, and the next [`MOST_AT_ONCE`] at most of those that were found, where they are kept
    /// still.
    pub(super) fn next(&mut self, kept: &KeptRequests, asked: &[Box<str>]) -> StoryBatch {
        let (mut requests, mut bytes, mut has_new) = (Vec::new(), 0, false);
        let mut numbers = HashSet::new();
        let mut add = |request: KeptRequest| {
            if numbers.insert(request.number()) {
                let content = RequestStory::of(&request, Viewer::Others).to_bytes();
                bytes += content.len();
                let field = Field { name: story(request.id()), content };
                requests.push((request, field));
            }
            requests.len() < MOST_AT_ONCE && bytes < MAX_BYTES
        };
        let mut has_room = asked.iter().filter_map(|id| kept.find(id)).all(&mut add);
        while has_room && let Some(number) = self.backlog.pop() {
            if let Some(request) = kept.numbered(number) {
                has_room = add(request);
                has_new = true;
            }
        }
        StoryBatch { requests, has_new }
    }

    /// Notes what was published.
    pub(super) fn note(&mut self, batch: StoryBatch) {
        if batch.has_new {
            self.last_published = Some(Instant::now());
        }
        for (request, _) in batch.requests {
            let (number, client) = (request.number(), request.client);
            let story = PublishedStory { id: request.id().into(), client, time: request.facts.came };
            self.done.insert(number);
            if self.published.insert(number, story).is_none() {
                *self.of_client.entry(client).or_default() += 1;
            }
        }
    }

    /// Takes out what is to be removed from Redis, many at once and seldom: where there are too many, those that are not
    /// among the newest, first of clients that have more than a few; and what is older than an hour.
    pub(super) fn take_surplus(&mut self, now: Timestamp) -> Vec<String> {
        let is_old = |story: &PublishedStory, age: Duration| now.since(story.time) > age;
        let mut removed = Vec::new();
        if self.published.first_key_value().is_some_and(|(_, oldest)| is_old(oldest, REMOVED_AFTER)) {
            self.take(&mut removed, usize::MAX, |_, story, _| is_old(story, KEPT));
        }
        if self.published.len() > MOST_KEPT + SLACK {
            let newest = self.first_of_newest;
            let surplus = self.published.len() - MOST_KEPT;
            self.take(&mut removed, surplus, |number, _, of_client| number < newest && of_client > FEW);
            let surplus = self.published.len().saturating_sub(MOST_KEPT);
            self.take(&mut removed, surplus, |number, _, _| number < newest);
        }
        removed
    }

    /// Moves the oldest `most` stories of which `is_taken` holds; it also gets the number, and how many the client has.
    fn take(&mut self, removed: &mut Vec<String>, most: usize, is_taken: impl Fn(u64, &PublishedStory, usize) -> bool) {
        let end = removed.len().saturating_add(most);
        self.published.retain(|number, published| {
            let of_client = self.of_client.get(&published.client).copied().unwrap_or_default();
            if removed.len() >= end || !is_taken(*number, published, of_client) {
                return true;
            }
            if of_client <= 1 {
                self.of_client.remove(&published.client);
            } else {
                self.of_client.insert(published.client, of_client - 1);
            }
            removed.push(story(&published.id));
            false
        });
    }
}

impl StoryBatch {
    pub(super) fn fields(&self) -> impl Iterator<Item = Field> {
        self.requests.iter().map(|(_, field)| field.clone())
    }
}

// What a gateway publishes about itself.

/// How a gateway is, as it publishes it.
#[derive(Debug, Deserialize, Serialize)]
pub(in crate::admin) struct StatusRecord {
    /// Empty: a gateway of an earlier version has written it.
    #[serde(default)]
    pub(in crate::admin) name: String,
    pub(in crate::admin) version: String,
    /// RFC 3339.
    pub(in crate::admin) since: String,
    pub(in crate::admin) draining: bool,
}

impl StatusRecord {
    /// Of this gateway, now.
    pub(in crate::admin) fn of(state: &AdminState) -> Self {
        Self {
            name: state.identity.name.get().to_string(),
            version: env!("PORTCULLIS_VERSION").to_owned(),
            since: state.identity.since.to_string(),
            draining: state.is_draining(),
        }
    }

    pub(in crate::admin) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    /// `None`: another version has written it.
    pub(in crate::admin) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests;
