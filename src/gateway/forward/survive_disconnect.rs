//! Requests whose outcome counts continue after their client has disconnected: disconnecting must not avoid a charge.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use crate::gateway::admit::progress::BodyProgress;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::worker_state::WorkerState;
use crate::listen::Response;

/// The future of an answer. If it is dropped before the answer comes, it continues in a task of its own, and the answer
/// is read as far as its outcome needs.
pub struct SurviveDisconnect {
    answer: Option<Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>>,
    worker: Arc<WorkerState>,
    progress: Option<BodyProgress>,
}

impl SurviveDisconnect {
    /// `progress` is that of the request's body.
    pub fn new(
        answer: impl Future<Output = Response<ResponseBody>> + Send + 'static,
        worker: Arc<WorkerState>,
        progress: Option<BodyProgress>,
    ) -> Self {
        Self { answer: Some(Box::pin(answer)), worker, progress }
    }
}

impl fmt::Debug for SurviveDisconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SurviveDisconnect").finish_non_exhaustive()
    }
}

impl Future for SurviveDisconnect {
    type Output = Response<ResponseBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(answer) = &mut self.answer else { return Poll::Pending };
        let answer = ready!(answer.as_mut().poll(cx));
        self.answer = None;
        Poll::Ready(answer)
    }
}

impl Drop for SurviveDisconnect {
    fn drop(&mut self) {
        let Some(answer) = self.answer.take() else { return };
        if let Some(progress) = &self.progress {
            progress.abandon();
        }
        self.worker.spawn_detached(async move { drop(answer.await.body.without_client()) });
    }
}
