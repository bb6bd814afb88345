//! A list that follows a Local API, and what is known of its decisions.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::crowdsec::DecisionStream;
use crate::crowdsec::DecisionType;
use crate::crowdsec::KnownDecisions;
use crate::crowdsec::ListSource;
use crate::gateway::followed_lists::FollowedAddresses;
use crate::gateway::followed_lists::LiveAddresses;
use crate::record::ListGauge;

/// The lists of a configuration that follow a source, by their number.
#[derive(Clone, Debug, Default)]
pub(in crate::app) struct OpenLists(Vec<Arc<FollowedList>>);

/// A list, its source, and what is known.
#[derive(Debug)]
pub(in crate::app) struct FollowedList {
    pub(super) source: ListSource,
    known: Arc<Known>,
}

/// What survives a reload that changes the key of the source, or how often it is asked.
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
