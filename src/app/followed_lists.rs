//! Lists that follow a source: what they hold, how their sources are, and the tasks that follow them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio::{task, time};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::app::source_tasks::Pauses;
use crate::gateway::snapshot::{FollowedAddresses, LiveAddresses};
use crate::record::ListGauge;
use crate::wire::crowdsec::decision_stream::MOST;
use crate::wire::crowdsec::{DecisionStream, DecisionType, KnownDecisions, LapiError, ListSource};
use crate::words::clock;
use crate::words::clock::{Clock, Timestamp};
use crate::words::units::counted;

// One task for each list that follows a source.

/// The running tasks.
#[derive(Debug, Default)]
pub(in crate::app) struct FollowTasks(Vec<(Arc<FollowedList>, CancellationToken)>);

impl FollowTasks {
    /// Starts tasks for new lists, and stops the tasks of lists that are gone or have another source.
    pub(in crate::app) fn follow(&mut self, lists: &OpenLists) {
        self.0.retain(|(known, stop)| {
            let stays = lists.lists().iter().any(|list| Arc::ptr_eq(known, list));
            if !stays {
                stop.cancel();
            }
            stays
        });
        for list in lists.lists() {
            if !self.0.iter().any(|(known, _)| Arc::ptr_eq(known, list)) {
                let stop = CancellationToken::new();
                tokio::spawn(stop.clone().run_until_cancelled_owned(follow(Arc::clone(list))));
                self.0.push((Arc::clone(list), stop));
            }
        }
    }

    /// Stops all of them. What the lists hold stays.
    pub(in crate::app) fn stop(&mut self) {
        self.0.drain(..).for_each(|(_, stop)| stop.cancel());
    }
}

// The task of a list: asks its source, and ends decisions when their time is over.

/// Even where every question was answered, everything is asked for once in so long: another bouncer with the same key gets
/// answers that this one misses.
const ALL_AGAIN: Duration = Duration::from_secs(3600);

/// The longest pause of a list that is asked for more often than this.
const SHORTEST_LONGEST: Duration = Duration::from_secs(1);

/// So late a decision ends at most, besides the time that it takes.
const SHORTEST_WAIT: Duration = Duration::from_millis(500);

/// More would fill the log.
const MOST_REASONS: usize = 100;

/// Follows the source of a list for ever.
pub(super) async fn follow(list: Arc<FollowedList>) {
    tokio::join!(ask(&list), end_decisions(&list));
}

async fn ask(list: &Arc<FollowedList>) {
    let mut pauses = Pauses::up_to(list.source.every.max(SHORTEST_LONGEST));
    let mut log = SourceLog::default();
    let mut all_since = None;
    loop {
        let bouncer = &list.source.bouncer;
        let asks_for_all = all_since.is_none_or(|since: Instant| since.elapsed() >= ALL_AGAIN);
        let answer = if asks_for_all { bouncer.all_decisions().await } else { bouncer.changed_decisions().await };
        match answer {
            Ok(answer) => {
                let answer = apply(list, answer).await;
                list.set_answered(clock::wall());
                log.answered(list, &answer);
                if asks_for_all {
                    all_since = Some(Instant::now());
                }
                pauses.reset();
                time::sleep(list.source.every).await;
            }
            Err(error) => {
                list.set_failed(&error.to_string());
                log.failed(list, &error);
                // The API may count the question as answered.
                all_since = None;
                time::sleep(pauses.next(fastrand::f64())).await;
            }
        }
    }
}

/// Runs on a thread that serves no requests.
async fn apply(list: &Arc<FollowedList>, answer: DecisionStream) -> DecisionStream {
    let applied = Arc::clone(list);
    let applying = task::spawn_blocking(move || {
        applied.apply(&answer);
        answer
    });
    applying.await.unwrap_or_default()
}

async fn end_decisions(list: &Arc<FollowedList>) {
    loop {
        let wait = async {
            match list.next_end() {
                // Decisions that end at almost the same time are removed together.
                Some(left) => time::sleep(left.max(SHORTEST_WAIT)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait => {
                let ending = Arc::clone(list);
                let _ = task::spawn_blocking(move || ending.remove_ended()).await;
            }
            () = list.changed() => {}
        }
    }
}

/// The last log message about a source, so that none is repeated.
#[derive(Debug, Default)]
struct SourceLog {
    has_answered: bool,
    /// The kind of the last failure.
    failing: Option<std::mem::Discriminant<LapiError>>,
    /// Words about decisions that are not followed.
    unfollowed: BTreeSet<String>,
    is_full: bool,
}

impl SourceLog {
    fn answered(&mut self, list: &FollowedList, answer: &DecisionStream) {
        let (name, url, entries) = (&*list.source.list, list.source.bouncer.lapi.url.as_str(), list.entries());
        let decisions = counted(entries, "decision");
        if !self.has_answered {
            info!(list = name, entries, "the list `{name}` follows {url}: {decisions}");
        } else if self.failing.is_some() {
            info!(list = name, entries, "the list `{name}` follows {url} again: {decisions}");
        }
        (self.has_answered, self.failing) = (true, None);
        for reason in &answer.unfollowed {
            let words = reason.to_string();
            if self.unfollowed.len() < MOST_REASONS && self.unfollowed.insert(words.clone()) {
                info!(list = name, "the list `{name}` does not follow decisions {words}");
            }
        }
        let is_full = answer.left_out > 0 || entries >= MOST;
        if is_full && !self.is_full {
            warn!(list = name, entries, "the list `{name}` is full: it follows {MOST} decisions and no more");
        }
        self.is_full = is_full;
    }

    fn failed(&mut self, list: &FollowedList, error: &LapiError) {
        let kind = std::mem::discriminant(error);
        if self.failing.replace(kind) == Some(kind) {
            return;
        }
        let (name, url) = (&*list.source.list, list.source.bouncer.lapi.url.as_str());
        if let LapiError::Refused(_) = error {
            error!(
                list = name,
                %error,
                "the list `{name}` cannot follow {url}: {error}; `cscli bouncers add` makes a key, and `key_file` names the \
                 file that holds it",
            );
        } else {
            warn!(
                list = name,
                %error,
                "the list `{name}` cannot follow {url}: {error}; what it knows stays in force until its own end",
            );
        }
    }
}

// A list that follows a Local API, and its known decisions.

/// The lists of a configuration that follow a source, by their number.
#[derive(Clone, Debug, Default)]
pub(in crate::app) struct OpenLists(Vec<Arc<FollowedList>>);

/// A list, its source, and its known decisions.
#[derive(Debug)]
pub(in crate::app) struct FollowedList {
    pub(super) source: ListSource,
    known: Arc<Known>,
}

/// The state that survives a reload that changes the key of the source, or its interval.
#[derive(Debug)]
struct Known {
    clock: Clock,
    decisions: Mutex<KnownDecisions>,
    addresses: LiveAddresses,
    /// `decisions` has changed.
    changed: Notify,
    state: Mutex<SourceState>,
}

/// How the source is.
#[derive(Clone, Debug, Default)]
struct SourceState {
    entries: usize,
    /// By the wall clock.
    answered: Option<Timestamp>,
    /// Why the last question was not answered.
    failure: Option<Arc<str>>,
}

impl OpenLists {
    /// The lists of a configuration. One whose source has the same URL keeps what it knows.
    pub(in crate::app) fn reopen(&self, sources: Vec<ListSource>, clock: &Clock) -> Self {
        let lists = sources.into_iter().map(|source| {
            let before = self.0.iter().find(|list| {
                list.source.list == source.list && list.source.bouncer.lapi.url == source.bouncer.lapi.url
            });
            match before {
                Some(same) if same.source == source => Arc::clone(same),
                Some(other) => Arc::new(FollowedList { source, known: Arc::clone(&other.known) }),
                None => Arc::new(FollowedList { source, known: Arc::new(Known::new(clock.clone())) }),
            }
        });
        Self(lists.collect())
    }

    pub(in crate::app) fn lists(&self) -> &[Arc<FollowedList>] {
        &self.0
    }

    /// Where requests look.
    pub(in crate::app) fn addresses(&self) -> impl Iterator<Item = LiveAddresses> {
        self.0.iter().map(|list| Arc::clone(&list.known.addresses))
    }

    /// How each list is now.
    pub(in crate::app) fn gauges(&self) -> Vec<ListGauge> {
        self.0.iter().map(|list| list.gauge()).collect()
    }
}

impl FollowedList {
    /// Takes in an answer of the source, and puts it in force. Takes some milliseconds where it is long.
    pub(super) fn apply(&self, answer: &DecisionStream) {
        if !answer.is_from_start && answer.new.is_empty() && answer.deleted.is_empty() {
            return;
        }
        let mut decisions = self.known.decisions.lock();
        decisions.apply(answer, self.known.clock.now());
        self.publish(&decisions);
        self.known.changed.notify_one();
    }

    /// Forgets decisions that have ended. Takes some milliseconds where many are known.
    pub(super) fn remove_ended(&self) {
        let mut decisions = self.known.decisions.lock();
        if decisions.remove_ended(self.known.clock.now()) {
            self.publish(&decisions);
        }
    }

    fn publish(&self, decisions: &KnownDecisions) {
        self.known.addresses.store(Arc::new(FollowedAddresses {
            banned: decisions.networks(DecisionType::Ban).collect(),
            challenged: decisions.networks(DecisionType::Captcha).collect(),
        }));
        self.known.state.lock().entries = decisions.len();
    }

    /// How many decisions are known.
    pub(super) fn entries(&self) -> usize {
        self.known.state.lock().entries
    }

    /// How long until the first decision ends; `None`: none is known.
    pub(super) fn next_end(&self) -> Option<Duration> {
        let end = self.known.decisions.lock().next_end()?;
        Some(end.since(self.known.clock.now()))
    }

    /// Waits until other decisions are known.
    pub(super) async fn changed(&self) {
        self.known.changed.notified().await;
    }

    pub(super) fn set_answered(&self, at: Timestamp) {
        let mut state = self.known.state.lock();
        (state.answered, state.failure) = (Some(at), None);
    }

    pub(super) fn set_failed(&self, reason: &str) {
        self.known.state.lock().failure = Some(reason.into());
    }

    fn gauge(&self) -> ListGauge {
        let SourceState { entries, answered, failure } = self.known.state.lock().clone();
        ListGauge {
            name: Arc::clone(&self.source.list),
            source: self.source.bouncer.lapi.url.to_string(),
            entries,
            answered,
            failure,
        }
    }
}

impl Known {
    fn new(clock: Clock) -> Self {
        Self {
            clock,
            decisions: Mutex::default(),
            addresses: LiveAddresses::default(),
            changed: Notify::new(),
            state: Mutex::default(),
        }
    }
}
