//! Ends the traffic of a test.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped, also by a test that fails: the threads of the traffic end when the flag is set.
#[derive(Debug)]
pub struct StopOnDrop<'f>(pub &'f AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
