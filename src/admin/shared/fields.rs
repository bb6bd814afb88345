//! The names of the fields that a gateway writes for the others.

/// How it is.
pub(in crate::admin) const STATUS: &str = "status";

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
