//! The store's Redis as a place for the audit trail.

use std::pin::Pin;
use std::sync::Arc;

use crate::record::audit::Append;
use crate::record::audit::Appended;
use crate::record::audit::RedisStream;
use crate::store::AnyStore;
use crate::store::redis::links::Failure;

/// Appends audit entries to streams in the store's Redis.
#[derive(Debug)]
pub(super) struct RedisStreams(AnyStore);

impl RedisStreams {
    /// Uses connections of its own, on the thread that calls this. `None`: the store is not in Redis.
    pub(super) fn of(store: &AnyStore) -> Option<Arc<dyn Append>> {
        matches!(store, AnyStore::Shared(_)).then(|| Arc::new(Self(store.on_another_core())) as Arc<dyn Append>)
    }
}

impl Append for RedisStreams {
    fn append<'a>(
        &'a self,
        stream: &'a RedisStream,
        fields: &'a [(&'static str, String)],
    ) -> Pin<Box<dyn Future<Output = Appended> + Send + 'a>> {
        Box::pin(async {
            let AnyStore::Shared(shared) = &self.0 else { return Appended::Away };
            match shared.append(&stream.key, stream.max_entries, fields).await {
                Ok(()) => Appended::Done,
                Err((Failure::Open, _)) => Appended::Away,
                Err((Failure::Refused, words)) => Appended::Lost(words),
                Err((Failure::Unknown, _)) => Appended::Lost("redis did not answer in time".to_owned()),
            }
        })
    }
}
