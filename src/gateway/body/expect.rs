//! `Expect: 100-continue`: the gateway asks the client for its body when the application asks for it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Sleep;

use crate::gateway::fault::BadRequest;

/// An application that ignores `Expect` waits for the body without asking. It gets the body after this time.
const PATIENCE: Duration = Duration::from_secs(1);

/// The application's side: it opens the gate when the application asks for the body. Dropping it gives the body up.
#[derive(Debug)]
pub struct ContinueSignal(Arc<Mutex<GateState>>);

/// The body's side: it keeps the body back until the application asks for it.
#[derive(Debug)]
pub struct ContinueGate {
    shared: Arc<Mutex<GateState>>,
    patience: Pin<Box<Sleep>>,
}

/// The application answered without asking for the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyRefused;

#[derive(Debug)]
struct GateState {
    phase: GatePhase,
    body: Option<Waker>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GatePhase {
    Waiting,
    Open,
    /// The application answered without asking for the body. The body is kept back until the answer has ended: breaking
    /// it off earlier would close the connection during the answer.
    Answered,
    Dropped,
}

/// A signal and the gate it opens.
pub fn continue_gate() -> (ContinueSignal, ContinueGate) {
    let shared = Arc::new(Mutex::new(GateState { phase: GatePhase::Waiting, body: None }));
    (ContinueSignal(Arc::clone(&shared)), ContinueGate { shared, patience: Box::pin(tokio::time::sleep(PATIENCE)) })
}

impl ContinueSignal {
    /// A function that opens the gate. It is called when the application answers 100.
    pub fn opener(&self) -> impl Fn() + Send + Sync + use<> {
        let shared = Arc::clone(&self.0);
        move || set_phase(&shared, GatePhase::Open)
    }

    /// The application has answered, so the gate stays closed unless it is open already. Returns whether it is open.
    pub fn close(&self) -> bool {
        set_phase(&self.0, GatePhase::Answered);
        self.0.lock().phase == GatePhase::Open
    }
}

impl Drop for ContinueSignal {
    fn drop(&mut self) {
        set_phase(&self.0, GatePhase::Dropped);
    }
}

/// Changes the phase. An open gate stays open, because the body is on its way.
fn set_phase(shared: &Mutex<GateState>, phase: GatePhase) {
    let mut shared = shared.lock();
    let is_allowed = match shared.phase {
        GatePhase::Waiting => true,
        GatePhase::Answered => phase == GatePhase::Dropped,
        GatePhase::Open | GatePhase::Dropped => false,
    };
    if is_allowed {
        shared.phase = phase;
        if let Some(body) = shared.body.take() {
            body.wake();
        }
    }
}

impl ContinueGate {
    /// Opens the gate from the body's side: the client did not wait.
    pub fn open(self) {
        set_phase(&self.shared, GatePhase::Open);
    }

    /// Whether the answer came first, so that the body must not pass.
    pub fn is_closed(&self) -> bool {
        self.shared.lock().phase == GatePhase::Answered
    }

    pub fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyRefused>> {
        let mut shared = self.shared.lock();
        if shared.phase == GatePhase::Waiting && self.patience.as_mut().poll(cx).is_ready() {
            shared.phase = GatePhase::Open;
        }
        match shared.phase {
            GatePhase::Open => Poll::Ready(Ok(())),
            GatePhase::Dropped => Poll::Ready(Err(BodyRefused)),
            GatePhase::Waiting | GatePhase::Answered => {
                shared.body = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

// Counts the bytes of a request's body while it streams, and keeps why it broke off.

/// Why a body may break off.
const FAULTS: [BadRequest; 3] = [BadRequest::Body, BadRequest::Slow, BadRequest::TooLong];

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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

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

    #[tokio::test(start_paused = true)]
    async fn a_100_opens_the_gate() {
        let (continue_signal, mut gate) = continue_gate();
        continue_signal.opener()();
        assert!(continue_signal.close());
        assert_eq!(poll_fn(|cx| gate.poll_open(cx)).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_application_gets_the_body_after_a_second() {
        let (_continue_signal, mut gate) = continue_gate();
        let before = tokio::time::Instant::now();
        assert_eq!(poll_fn(|cx| gate.poll_open(cx)).await, Ok(()));
        assert_eq!(before.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_answer_the_body_is_kept_back_and_then_given_up() {
        let (continue_signal, mut gate) = continue_gate();
        assert!(!continue_signal.close());
        let waiting = tokio::time::timeout(Duration::from_secs(60), poll_fn(|cx| gate.poll_open(cx)));
        assert!(waiting.await.is_err());
        drop(continue_signal);
        assert_eq!(poll_fn(|cx| gate.poll_open(cx)).await, Err(BodyRefused));
    }
}
