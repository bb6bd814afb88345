//! One task while keys are fetched from a URL.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::OpenKeys;
use super::fetch::follow;
use crate::gateway::tokens::KeySource;
use crate::gateway::tokens::LiveKeys;

/// The keys in force, and the task that fetches them.
#[derive(Debug)]
pub(in crate::app) struct KeyTask {
    keys: OpenKeys,
    running: Option<(Arc<LiveKeys>, CancellationToken)>,
}

impl KeyTask {
    /// It does not run yet.
    pub(in crate::app) fn of(keys: OpenKeys) -> Self {
        Self { keys, running: None }
    }

    pub(in crate::app) fn keys(&self) -> &OpenKeys {
        &self.keys
    }

    /// These keys come into force.
    pub(in crate::app) fn replace(&mut self, keys: OpenKeys) {
        self.keys = keys;
        self.start();
    }

    /// Starts the task where keys are fetched, and stops that of other keys.
    pub(in crate::app) fn start(&mut self) {
        let wanted = self.keys.keys().cloned();
        let is_wanted = |live| wanted.as_ref().is_some_and(|keys| Arc::ptr_eq(&keys.live, live));
        if self.running.as_ref().is_some_and(|(live, _)| is_wanted(live)) {
            return;
        }
        self.stop();
        if let Some(keys) = wanted
            && let KeySource::Url(document) = keys.source
        {
            let stop = CancellationToken::new();
            let following = follow(document, Arc::clone(&keys.live));
            tokio::spawn(stop.clone().run_until_cancelled_owned(following));
            self.running = Some((keys.live, stop));
        }
    }

    /// Stops it. What is known stays.
    pub(in crate::app) fn stop(&mut self) {
        if let Some((_, stop)) = self.running.take() {
            stop.cancel();
        }
    }
}
