//! The keys that tokens are verified with: where they come from, and the task that fetches them.

mod fetch;
mod key_task;
mod open_keys;

pub(in crate::app) use self::key_task::KeyTask;
pub(in crate::app) use self::open_keys::OpenKeys;
