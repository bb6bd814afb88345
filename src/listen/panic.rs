//! Logs panics of requests.

use std::any::Any;

use tracing::error;

/// Logs a panic, which is a defect of the gateway. Only the request that panicked ends.
pub(super) fn log_panic(panic: &(dyn Any + Send)) {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    error!(panic = message, "a request panicked, this is a defect; the request was dropped");
}
