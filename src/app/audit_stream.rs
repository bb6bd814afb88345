//! The store's Redis as a place for the audit trail.

use std::pin::Pin;
use std::sync::Arc;

use crate::record::audit::AppendOutcome;
use crate::record::audit::RedisStream;
use crate::record::audit::StreamAppender;
use crate::store::AnyStore;
use crate::store::redis::Failure;

/// Appends audit entries to streams in the store's Redis.
#[derive(Debug)]
pub(super) struct RedisStreams(AnyStore);

impl RedisStreams {
    /// Uses connections of its own, on the thread that calls this. `None`: the store is not in Redis.
    pub(super) fn of(store: &AnyStore) -> Option<Arc<dyn StreamAppender>> {
        matches!(store, AnyStore::Shared(_)).then(|| Arc::new(Self(store.on_another_core())) as Arc<dyn StreamAppender>)
    }
}

impl StreamAppender for RedisStreams {
    fn append<'a>(
        &'a self,
        stream: &'a RedisStream,
        fields: &'a [(&'static str, String)],
    ) -> Pin<Box<dyn Future<Output = AppendOutcome> + Send + 'a>> {
        Box::pin(async {
            let AnyStore::Shared(shared) = &self.0 else { return AppendOutcome::Unavailable };
            match shared.append(&stream.key, stream.max_entries, fields).await {
                Ok(()) => AppendOutcome::Appended,
                Err((Failure::Open, _)) => AppendOutcome::Unavailable,
                Err((Failure::Refused, words)) => AppendOutcome::Lost(words),
                Err((Failure::Unknown, _)) => AppendOutcome::Lost("redis did not answer in time".to_owned()),
            }
        })
    }
}
