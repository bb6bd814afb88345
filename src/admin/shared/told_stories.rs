//! The stories that this gateway has told to the others.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

use super::fields::story;
use crate::clock::Timestamp;
use crate::record::kept_requests::KeptRequest;
use crate::record::kept_requests::KeptRequests;
use crate::record::kept_requests::RequestStory;
use crate::record::kept_requests::Viewer;
use crate::store::shared_records::Field;

/// The requests whose stories are in Redis, and those whose stories are to be written there next.
#[derive(Debug, Default)]
pub(in crate::admin) struct ToldStories {
    /// By the number of the request, so that the oldest come first. Redis may have lost some of them.
    told: BTreeMap<u64, ToldStory>,
    of_client: HashMap<IpAddr, usize>,
    /// The numbers of the requests in the ring that need not be told: they were, since Redis was empty last.
    done: HashSet<u64>,
    /// The numbers of those that are to be told, the most urgent last.
    backlog: Vec<u64>,
    /// The lowest number of the newest requests, which stay in Redis whoever sent them.
    first_of_newest: u64,
    /// When stories were told last that nobody had asked for.
    last_told: Option<Instant>,
}

#[derive(Debug)]
struct ToldStory {
    id: Box<str>,
    client: IpAddr,
    time: Timestamp,
}

/// Requests that are about to be told.
#[derive(Debug)]
pub(super) struct Untold {
    requests: Vec<(KeptRequest, Field)>,
    /// Whether there are some that nobody asked for.
    has_new: bool,
}

impl ToldStories {
    /// Redis has none of them any more, or may have none.
    pub(super) fn forget(&mut self) {
        self.done.clear();
        self.backlog.clear();
        self.last_told = None;
    }

    /// Whether stories were told within this time that nobody had asked for.
    pub(super) fn was_told_within(&self, span: Duration) -> bool {
        self.last_told.is_some_and(|last| last.elapsed() < span)
    }

    /// Whether some of the stories that were found are not told yet.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Finds all stories that are not told yet, the newest of each client first.
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
    pub(super) fn next(&mut self, kept: &KeptRequests, asked: &[Box<str>]) -> Untold {
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
        Untold { requests, has_new }
    }

    /// Notes what was told.
    pub(super) fn note(&mut self, untold: Untold) {
        if untold.has_new {
            self.last_told = Some(Instant::now());
        }
        for (request, _) in untold.requests {
            let (number, client) = (request.number(), request.client);
            let told = ToldStory { id: request.id().into(), client, time: request.facts.came };
            self.done.insert(number);
            if self.told.insert(number, told).is_none() {
                *self.of_client.entry(client).or_default() += 1;
            }
        }
    }

    /// Takes out what is to be removed from Redis, many at once and seldom: where there are too many, those that are not
    /// among the newest, first of clients that have more than a few; and what is older than an hour.
    pub(super) fn take_surplus(&mut self, now: Timestamp) -> Vec<String> {
        let is_old = |told: &ToldStory, age: Duration| now.since(told.time) > age;
        let mut removed = Vec::new();
        if self.told.first_key_value().is_some_and(|(_, oldest)| is_old(oldest, REMOVED_AFTER)) {
            self.take(&mut removed, usize::MAX, |_, told, _| is_old(told, KEPT));
        }
        if self.told.len() > MOST_KEPT + SLACK {
            let newest = self.first_of_newest;
            let surplus = self.told.len() - MOST_KEPT;
            self.take(&mut removed, surplus, |number, _, of_client| number < newest && of_client > FEW);
            let surplus = self.told.len().saturating_sub(MOST_KEPT);
            self.take(&mut removed, surplus, |number, _, _| number < newest);
        }
        removed
    }

    /// Moves the oldest `most` stories of which `is_taken` holds; it also gets the number, and how many the client has.
    fn take(&mut self, removed: &mut Vec<String>, most: usize, is_taken: impl Fn(u64, &ToldStory, usize) -> bool) {
        let end = removed.len().saturating_add(most);
        self.told.retain(|number, told| {
            let of_client = self.of_client.get(&told.client).copied().unwrap_or_default();
            if removed.len() >= end || !is_taken(*number, told, of_client) {
                return true;
            }
            if of_client <= 1 {
                self.of_client.remove(&told.client);
            } else {
                self.of_client.insert(told.client, of_client - 1);
            }
            removed.push(story(&told.id));
            false
        });
    }
}

impl Untold {
    pub(super) fn fields(&self) -> impl Iterator<Item = Field> {
        self.requests.iter().map(|(_, field)| field.clone())
    }
}

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

#[cfg(test)]
mod tests;
