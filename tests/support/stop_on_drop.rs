//! The end of a test's traffic.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

/// Says that it is over when it is dropped, by a test that fails too: so that threads that go on until then end.
#[derive(Debug)]
pub struct StopOnDrop<'f>(pub &'f AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
