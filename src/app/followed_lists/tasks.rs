//! One task for each list that follows a source.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::FollowedList;
use super::OpenLists;
use super::follow::follow;

/// The running tasks.
#[derive(Debug, Default)]
pub(in crate::app) struct FollowTasks(Vec<(Arc<FollowedList>, CancellationToken)>);

impl FollowTasks {
    /// Starts tasks for lists that are new, and stops those of lists that are gone or have another source.
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
