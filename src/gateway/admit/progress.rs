//! Counts the bytes of a request's body while it streams, and keeps why it broke off.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use super::framing::BadRequest;

/// Shared by the body, which moves into the connection to the application, and the request's exchange.
#[derive(Clone, Debug, Default)]
pub struct BodyProgress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    bytes: AtomicU64,
    fault: AtomicU8,
    is_abandoned: AtomicBool,
}

impl BodyProgress {
    pub fn count(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        // One task writes. Another reads after that task has ended.
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// The client's body broke off, for this reason.
    pub fn fail(&self, fault: BadRequest) {
        let code = FAULTS.iter().position(|known| *known == fault).map_or(0, |position| position + 1);
        self.0.fault.store(u8::try_from(code).unwrap_or_default(), Ordering::Release);
    }

    /// The client has left: the end of a body of unknown length may be where it was cut off.
    pub fn abandon(&self) {
        self.0.is_abandoned.store(true, Ordering::Release);
    }

    pub fn is_abandoned(&self) -> bool {
        self.0.is_abandoned.load(Ordering::Acquire)
    }

    pub fn fault(&self) -> Option<BadRequest> {
        let code = usize::from(self.0.fault.load(Ordering::Acquire));
        FAULTS.get(code.checked_sub(1)?).copied()
    }
}

/// Why a body may break off.
const FAULTS: [BadRequest; 3] = [BadRequest::Body, BadRequest::Slow, BadRequest::TooLong];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_known_to_all_clones_of_the_progress() {
        let progress = BodyProgress::default();
        let shared = progress.clone();
        assert_eq!(shared.fault(), None);
        progress.fail(BadRequest::Slow);
        assert_eq!(shared.fault(), Some(BadRequest::Slow));
        progress.count(3);
        assert_eq!(progress.count(4), 7);
        assert_eq!(shared.bytes(), 7);
    }
}
