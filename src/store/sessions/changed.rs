//! Which sessions have changed, for the snapshot on disk.

use std::mem;

use crate::key::KeyHash;

/// The sessions of a shard that have changed since they were last taken. Nothing is noted until somebody watches.
#[derive(Debug, Default)]
pub(super) enum ChangedSessions {
    #[default]
    Unwatched,
    Some(Vec<KeyHash>),
    /// More than it is worth to tell one by one.
    TooMany,
}

/// So many may have changed, however few sessions there are.
const SPARE: usize = 256;

impl ChangedSessions {
    /// Notes what changes from now on.
    pub(super) fn watch(&mut self) {
        *self = Self::Some(Vec::new());
    }

    /// Notes a change among so many sessions.
    pub(super) fn note(&mut self, session: KeyHash, of: usize) {
        match self {
            Self::Some(changed) if changed.len() < of + SPARE => changed.push(session),
            Self::Some(_) => *self = Self::TooMany,
            Self::Unwatched | Self::TooMany => {}
        }
    }

    /// Notes that all sessions have changed.
    pub(super) fn note_all(&mut self) {
        if let Self::Some(_) = self {
            *self = Self::TooMany;
        }
    }

    /// What has changed since the last call, each at least once; `None`: too much, or nobody watched.
    pub(super) fn take(&mut self) -> Option<Vec<KeyHash>> {
        match self {
            Self::Some(changed) => Some(mem::take(changed)),
            Self::Unwatched | Self::TooMany => None,
        }
    }
}
