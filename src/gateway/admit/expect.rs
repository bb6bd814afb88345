//! `Expect: 100-continue`: the client is asked for its body when the application asks for it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Sleep;

/// The application's side: says whether the body is wanted. When it is dropped, the body is given up.
#[derive(Debug)]
pub struct Invitation(Arc<Mutex<Shared>>);

/// The body's side: holds it back until it is wanted.
#[derive(Debug)]
pub struct Gate {
    shared: Arc<Mutex<Shared>>,
    patience: Pin<Box<Sleep>>,
}

/// A body that nobody wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unwanted;

#[derive(Debug)]
struct Shared {
    phase: Phase,
    body: Option<Waker>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Waiting,
    Open,
    /// The application answered without the body. It is held back until the answer is through: breaking it off
    /// earlier would end the connection under the answer.
    Held,
    Over,
}

/// An application that knows nothing of 100-continue waits for the body.
const PATIENCE: Duration = Duration::from_secs(1);

/// An invitation and the gate it opens.
pub fn gate() -> (Invitation, Gate) {
    let shared = Arc::new(Mutex::new(Shared { phase: Phase::Waiting, body: None }));
    (Invitation(Arc::clone(&shared)), Gate { shared, patience: Box::pin(tokio::time::sleep(PATIENCE)) })
}

impl Invitation {
    /// What opens the gate when the application says 100.
    pub fn opener(&self) -> impl Fn() + Send + Sync + use<> {
        let shared = Arc::clone(&self.0);
        move || turn(&shared, Phase::Open)
    }

    /// The application's answer is here: what was not asked for by now never is. Says whether it was.
    pub fn close(&self) -> bool {
        turn(&self.0, Phase::Held);
        self.0.lock().phase == Phase::Open
    }
}

impl Drop for Invitation {
    fn drop(&mut self) {
        turn(&self.0, Phase::Over);
    }
}

/// An open gate stays open: the body is on its way.
fn turn(shared: &Mutex<Shared>, phase: Phase) {
    let mut shared = shared.lock();
    let is_allowed = match shared.phase {
        Phase::Waiting => true,
        Phase::Held => phase == Phase::Over,
        Phase::Open | Phase::Over => false,
    };
    if is_allowed {
        shared.phase = phase;
        if let Some(body) = shared.body.take() {
            body.wake();
        }
    }
}

impl Gate {
    /// Opens it from inside: the client did not wait.
    pub fn open(self) {
        turn(&self.shared, Phase::Open);
    }

    /// Whether the answer came first, so that nothing is to pass.
    pub fn is_held(&self) -> bool {
        self.shared.lock().phase == Phase::Held
    }

    pub fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unwanted>> {
        let mut shared = self.shared.lock();
        if shared.phase == Phase::Waiting && self.patience.as_mut().poll(cx).is_ready() {
            shared.phase = Phase::Open;
        }
        match shared.phase {
            Phase::Open => Poll::Ready(Ok(())),
            Phase::Over => Poll::Ready(Err(Unwanted)),
            Phase::Waiting | Phase::Held => {
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
    async fn a_hundred_opens_the_gate() {
        let (invitation, mut gate) = gate();
        invitation.opener()();
        assert!(invitation.close());
        assert_eq!(poll_fn(|cx| gate.poll_open(cx)).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_application_gets_the_body_after_a_second() {
        let (_invitation, mut gate) = gate();
        let before = tokio::time::Instant::now();
        assert_eq!(poll_fn(|cx| gate.poll_open(cx)).await, Ok(()));
        assert_eq!(before.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_answer_the_body_is_held_and_then_given_up() {
        let (invitation, mut gate) = gate();
        assert!(!invitation.close());
        let waiting = tokio::time::timeout(Duration::from_secs(60), poll_fn(|cx| gate.poll_open(cx)));
        assert!(waiting.await.is_err());
        drop(invitation);
        assert_eq!(poll_fn(|cx| gate.poll_open(cx)).await, Err(Unwanted));
    }
}
