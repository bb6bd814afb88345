//! The tasks that ask sources while the gateway runs: for the members of lists, and for the keys of tokens.

use super::followed_lists::FollowTasks;
use super::followed_lists::OpenLists;
use super::token_keys::KeyTask;
use super::token_keys::OpenKeys;

/// The running tasks.
#[derive(Debug)]
pub(super) struct SourceTasks {
    lists: FollowTasks,
    keys: KeyTask,
}

impl SourceTasks {
    /// Nothing runs yet.
    pub(super) fn of(keys: OpenKeys) -> Self {
        Self { lists: FollowTasks::default(), keys: KeyTask::of(keys) }
    }

    /// Asks the sources of these lists, and no others.
    pub(super) fn follow_lists(&mut self, lists: &OpenLists) {
        self.lists.follow(lists);
    }

    /// Asks for the keys in force.
    pub(super) fn follow_keys(&mut self) {
        self.keys.start();
    }

    /// These keys come into force.
    pub(super) fn replace_keys(&mut self, keys: OpenKeys) {
        self.keys.replace(keys);
    }

    /// The keys in force that tokens are verified with.
    pub(super) fn keys(&self) -> &OpenKeys {
        self.keys.keys()
    }

    /// Asks nobody any more. What is known stays.
    pub(super) fn stop(&mut self) {
        self.lists.stop();
        self.keys.stop();
    }
}
