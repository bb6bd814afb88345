//! How the audit trail reaches the store's Redis.

use std::fmt;
use std::pin::Pin;

use super::RedisStream;

/// A Redis that entries can be appended to.
pub trait StreamAppender: fmt::Debug + Send + Sync {
    /// Appends one entry of field names and texts.
    fn append<'a>(
        &'a self,
        stream: &'a RedisStream,
        fields: &'a [(&'static str, String)],
    ) -> Pin<Box<dyn Future<Output = AppendOutcome> + Send + 'a>>;
}

/// Whether Redis took an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AppendOutcome {
    Appended,
    /// Redis is down and was sent nothing. The entry may be sent again.
    Unavailable,
    /// Redis refused the entry or did not answer. The entry is not sent again, so that it is never there twice. With
    /// the reason as a sentence.
    Lost(String),
}
