//! The future of a response, in memory that the requests of a thread use one after another.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use tokio_util::sync::ReusableBoxFuture;

use super::response_body::ResponseBody;
use crate::listen::Response;
use crate::pool::FreeList;

/// The future of a response, on the heap. Its memory goes back to the pool when it is ready.
pub struct PooledFuture(
    /// `None`: it is ready.
    Option<ReusableBoxFuture<'static, Response<ResponseBody>>>,
);

impl PooledFuture {
    pub fn new(future: impl Future<Output = Response<ResponseBody>> + Send + 'static) -> Self {
        Self(Some(match POOL.with_borrow_mut(FreeList::take) {
            Some(mut place) => {
                place.set(future);
                place
            }
            None => ReusableBoxFuture::new(future),
        }))
    }
}

impl Future for PooledFuture {
    type Output = Response<ResponseBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let response = ready!(future.poll(cx));
        // A future that is ready holds nothing but its memory.
        if let Some(place) = self.0.take() {
            POOL.with_borrow_mut(|pool| pool.put(place));
        }
        Poll::Ready(response)
    }
}

impl fmt::Debug for PooledFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledFuture").finish_non_exhaustive()
    }
}

thread_local! {
    static POOL: RefCell<FreeList<ReusableBoxFuture<'static, Response<ResponseBody>>>> =
        const { RefCell::new(FreeList::empty()) };
}
