//! What a test runs beside what it does itself.

use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot::{self, Sender};
use tokio::task;

/// A runtime on a thread of its own. Its tasks end with it.
#[derive(Debug)]
pub struct Background {
    runtime: Handle,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = thread::spawn(move || drop(runtime.block_on(ended)));
        Self { runtime: handle, end: Some(end), thread: Some(thread) }
    }

    pub fn spawn<F: Future<Output: Send> + Send + 'static>(&self, task: F) -> task::JoinHandle<F::Output> {
        self.runtime.spawn(task)
    }

    /// Waits here for what the thread does.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.end.take());
        drop(self.thread.take().map(JoinHandle::join));
    }
}
