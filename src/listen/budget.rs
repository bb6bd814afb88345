//! Memory that the requests of one connection share: over HTTP/2 there are many at a time.

use std::future::pending;
use std::sync::Arc;
use std::sync::OnceLock;

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
pub struct Share(OwnedSemaphorePermit);

impl Budget {
    /// Waits for so many bytes of `total`, which is what the first to ask says: most connections never do. Who wants more
    /// than there is gets all of it.
    ///
    /// A request asks once, for all that it may come to need, so that none waits for another that waits for it.
    pub async fn share(&self, bytes: usize, total: usize) -> Share {
        let total = self.0.get_or_init(|| {
            let bytes = total.min(Semaphore::MAX_PERMITS);
            Total { bytes, left: Arc::new(Semaphore::new(bytes)) }
        });
        let bytes = u32::try_from(bytes.min(total.bytes)).unwrap_or(u32::MAX);
        match Arc::clone(&total.left).acquire_many_owned(bytes).await {
            Ok(share) => Share(share),
            // It is never closed.
            Err(_) => pending().await,
        }
    }
}

impl Share {
    /// So many bytes are enough: the rest goes back.
    pub fn shrink(&mut self, bytes: usize) {
        if let Some(rest) = self.0.num_permits().checked_sub(bytes) {
            drop(self.0.split(rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;
    use std::task::Poll;
    use std::task::Waker;

    use super::*;

    const TOTAL: usize = 100;

    /// The share, if it is there at once.
    fn share(budget: &Budget, bytes: usize) -> Option<Share> {
        match pin!(budget.share(bytes, TOTAL)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(share) => Some(share),
            Poll::Pending => None,
        }
    }

    #[test]
    fn shares_never_exceed_the_total_and_go_back() {
        let budget = Budget::default();
        let first = share(&budget, 60);
        assert!(first.is_some() && share(&budget, 60).is_none());
        let rest = share(&budget, 40);
        assert!(rest.is_some() && share(&budget, 1).is_none());
        drop((first, rest));
        assert!(share(&budget, TOTAL).is_some());
    }

    #[test]
    fn what_a_share_does_not_need_is_there_for_others() {
        let budget = Budget::default();
        let mut first = share(&budget, TOTAL).unwrap();
        first.shrink(40);
        first.shrink(41);
        assert!(share(&budget, 61).is_none() && share(&budget, 60).is_some());
    }

    #[test]
    fn who_asks_for_more_than_there_is_gets_all() {
        let budget = Budget::default();
        let all = share(&budget, 10 * TOTAL);
        assert!(all.is_some() && share(&budget, 1).is_none());
    }
}
