//! `Expect: 100-continue`: the gateway asks the client for its body when the application asks for it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Sleep;

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

/// An application that ignores `Expect` waits for the body without asking. It gets the body after this time.
const PATIENCE: Duration = Duration::from_secs(1);

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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

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
