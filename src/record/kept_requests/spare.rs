//! Kept requests that left the ring, for those that this thread denies next: once the ring is full, keeping a request
//! allocates no memory.

use std::cell::RefCell;

use super::KeptRequest;

thread_local! {
    #[expect(clippy::vec_box, reason = "they go back into the ring as boxes")]
    static SPARE: RefCell<Vec<Box<KeptRequest>>> = const { RefCell::new(Vec::new()) };
}

/// Enough for the denials of a busy core that are under way.
const MAX_SPARE: usize = 64;

pub(super) fn take() -> Option<Box<KeptRequest>> {
    SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten()
}

pub(super) fn put(request: Box<KeptRequest>) {
    // While a thread ends it has no list.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < MAX_SPARE {
            spare.push(request);
        }
    });
}
