//! The task of a list: asks its source, and ends decisions when their time is over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task;
use tokio::time;
use tokio::time::Instant;
use tracing::error;
use tracing::info;
use tracing::warn;

use super::FollowedList;
use crate::app::pauses::Pauses;
use crate::clock;
use crate::crowdsec::DecisionStream;
use crate::crowdsec::LapiError;
use crate::crowdsec::decision_stream::MOST;
use crate::units::counted;

/// Follows the source of a list for ever.
pub(super) async fn follow(list: Arc<FollowedList>) {
    tokio::join!(ask(&list), end_decisions(&list));
}

/// Even where every question was answered, everything is asked for once in so long: another bouncer with the same key gets
/// answers that this one misses.
const ALL_AGAIN: Duration = Duration::from_secs(3600);

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

/// The longest pause of a list that is asked for more often than this.
const SHORTEST_LONGEST: Duration = Duration::from_secs(1);

/// On a thread that serves nobody else.
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
                // Those that end within the same moment end together.
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

/// So late a decision ends at most, besides the time that it takes.
const SHORTEST_WAIT: Duration = Duration::from_millis(500);

/// What was logged about a source, so that nothing is said twice.
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

/// More would fill the log.
const MOST_REASONS: usize = 100;
