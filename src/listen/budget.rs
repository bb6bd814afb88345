//! Bounds the memory that the concurrent requests of one connection use together.

use std::future::pending;
use std::sync::Arc;
use std::sync::OnceLock;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

/// The bytes that all requests of a connection may buffer together. A request that asks for more than is left waits.
#[derive(Debug, Default)]
pub struct Budget(OnceLock<Total>);

#[derive(Debug)]
struct Total {
    bytes: usize,
    free: Arc<Semaphore>,
}

/// A part of a budget. It goes back when this is dropped.
#[derive(Debug)]
pub struct BudgetShare(OwnedSemaphorePermit);

impl Budget {
    /// Waits for `bytes` of the budget. `max_body` is the most that one request can use; the first call decides the size of
    /// the budget by it. A request for more than the whole budget gets all of it.
    ///
    /// A request asks once, for all that it may need, so that no two requests wait for each other.
    pub async fn share(&self, bytes: usize, max_body: usize) -> BudgetShare {
        let total = self.0.get_or_init(|| {
            let bytes = max_body.saturating_mul(CONCURRENT_BODIES).min(Semaphore::MAX_PERMITS);
            Total { bytes, free: Arc::new(Semaphore::new(bytes)) }
        });
        let bytes = u32::try_from(bytes.min(total.bytes)).unwrap_or(u32::MAX);
        match Arc::clone(&total.free).acquire_many_owned(bytes).await {
            Ok(share) => BudgetShare(share),
            // It is never closed.
            Err(_) => pending().await,
        }
    }
}

impl BudgetShare {
    /// Ties a share to its bytes. The part that they do not need goes back now, the rest when they are dropped.
    pub fn of(share: Option<Self>, bytes: Bytes) -> Bytes {
        let Some(mut share) = share else { return bytes };
        if let Some(rest) = share.0.num_permits().checked_sub(bytes.len()) {
            drop(share.0.split(rest));
        }
        Bytes::from_owner(Shared { bytes, _share: share })
    }
}

struct Shared {
    bytes: Bytes,
    _share: BudgetShare,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// In bytes: a body up to this size needs no share. Logins are shorter.
pub const SHARE_FREE: usize = 4 * 1024;

/// How many bodies of the greatest size fit into the budget.
pub const CONCURRENT_BODIES: usize = 32;

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;
    use std::task::Poll;
    use std::task::Waker;

    use super::*;

    const MAX_BODY: usize = 100;
    const TOTAL: usize = CONCURRENT_BODIES * MAX_BODY;

    /// The share, if it is free at once.
    fn share(budget: &Budget, bytes: usize) -> Option<BudgetShare> {
        match pin!(budget.share(bytes, MAX_BODY)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(share) => Some(share),
            Poll::Pending => None,
        }
    }

    #[test]
    fn shares_never_exceed_the_total_and_go_back() {
        let budget = Budget::default();
        let first = share(&budget, TOTAL - 40);
        assert!(first.is_some() && share(&budget, 60).is_none());
        let rest = share(&budget, 40);
        assert!(rest.is_some() && share(&budget, 1).is_none());
        drop((first, rest));
        assert!(share(&budget, TOTAL).is_some());
    }

    #[test]
    fn a_share_is_as_large_as_its_bytes_and_lives_as_long() {
        let budget = Budget::default();
        let bytes = BudgetShare::of(share(&budget, TOTAL), Bytes::from_static(b"user=alice"));
        assert!(share(&budget, TOTAL - 9).is_none() && share(&budget, TOTAL - 10).is_some());
        let part = bytes.slice(..1);
        drop(bytes);
        assert!(share(&budget, TOTAL).is_none());
        drop(part);
        assert!(share(&budget, TOTAL).is_some());
    }

    #[test]
    fn a_request_for_more_than_the_budget_gets_all_of_it() {
        let budget = Budget::default();
        let all = share(&budget, 10 * TOTAL);
        assert!(all.is_some() && share(&budget, 1).is_none());
    }
}
