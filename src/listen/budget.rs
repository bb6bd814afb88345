//! Memory that the requests of one connection share: over HTTP/2 there are many at a time.

use std::future::pending;
use std::sync::Arc;
use std::sync::OnceLock;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

/// So many bytes for all requests of a connection together. Who asks for more than is left waits in line.
#[derive(Debug, Default)]
pub struct Budget(OnceLock<Total>);

#[derive(Debug)]
struct Total {
    bytes: usize,
    left: Arc<Semaphore>,
}

/// A part of a budget, which goes back when this is dropped.
#[derive(Debug)]
pub struct BudgetShare(OwnedSemaphorePermit);

impl Budget {
    /// Waits for so many bytes of a budget that has room for some that are `whole`, the most that one has a use for, as
    /// the first to ask says. Who wants more than there is gets all of it.
    ///
    /// A request asks once, for all that it may come to need, so that none waits for another that waits for it.
    pub async fn share(&self, bytes: usize, whole: usize) -> BudgetShare {
        let total = self.0.get_or_init(|| {
            let bytes = whole.saturating_mul(AT_A_TIME).min(Semaphore::MAX_PERMITS);
            Total { bytes, left: Arc::new(Semaphore::new(bytes)) }
        });
        let bytes = u32::try_from(bytes.min(total.bytes)).unwrap_or(u32::MAX);
        match Arc::clone(&total.left).acquire_many_owned(bytes).await {
            Ok(share) => BudgetShare(share),
            // It is never closed.
            Err(_) => pending().await,
        }
    }
}

impl BudgetShare {
    /// Bytes, and the share that was asked for them, if one was: what they do not need of it goes back now, and the rest
    /// once they are let go.
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

/// In bytes: who needs no more than this needs no share. Logins are shorter.
pub const SHARE_FREE: usize = 4 * 1024;

/// So many that are whole have room at a time.
pub const AT_A_TIME: usize = 32;

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;
    use std::task::Poll;
    use std::task::Waker;

    use super::*;

    const WHOLE: usize = 100;
    const TOTAL: usize = AT_A_TIME * WHOLE;

    /// The share, if it is there at once.
    fn share(budget: &Budget, bytes: usize) -> Option<BudgetShare> {
        match pin!(budget.share(bytes, WHOLE)).poll(&mut Context::from_waker(Waker::noop())) {
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
    fn a_share_is_as_long_as_its_bytes_and_as_long_there() {
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
    fn who_asks_for_more_than_there_is_gets_all() {
        let budget = Budget::default();
        let all = share(&budget, 10 * TOTAL);
        assert!(all.is_some() && share(&budget, 1).is_none());
    }
}
