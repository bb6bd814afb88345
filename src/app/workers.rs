//! The data plane: one thread a core, each with a runtime of its own, so that a request stays on one core.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::{io, thread};

use arc_swap::ArcSwap;
use tokio::runtime;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender};
use tokio::sync::{mpsc, oneshot};

use crate::app::process::trim_allocator;
use crate::fronts::Fronts;
use crate::listen;
use crate::listen::{AcceptStop, AcceptStopper, ListenAddress, ListenerState, ListeningSocket};
use crate::words::turn;

/// So many events begin a round at most: the state of their requests fits into the second cache of a core.
const EVENTS_OF_A_ROUND: usize = 128;

/// After so many polls at the latest a thread looks for events, however much is left to do.
const POLLS_OF_A_ROUND: u32 = 256;

/// The threads that serve, with a channel to each.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<(UnboundedSender<Job>, JoinHandle<()>)>,
}

/// The parts that one thread serves with. No other thread uses its connections to the applications.
#[derive(Debug)]
pub struct Worker {
    pub fronts: Fronts,
    pub settings: Arc<ArcSwap<listen::ConnectionSettings>>,
}

/// A command to a thread.
#[derive(Debug)]
enum Job {
    /// Accept connections from a socket until `stop`.
    Serve { socket: ListeningSocket, address: ListenAddress, listener: Arc<ListenerState>, stop: AcceptStop },
    /// Answer, to show that the thread is not stuck.
    Ping(oneshot::Sender<()>),
}

/// Finds out whether every thread still serves.
#[derive(Clone, Debug)]
pub struct WorkerProbe(Vec<WeakUnboundedSender<Job>>);

/// The number of threads: as many as this process may use cores.
pub fn count() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

impl Workers {
    /// Starts `count` threads; `worker` is called once on each.
    pub fn start(count: usize, worker: impl Fn() -> Worker + Clone + Send + 'static) -> io::Result<Self> {
        let threads = (0..count).map(|core| {
            let runtime = runtime()?;
            let (jobs, queue) = mpsc::unbounded_channel();
            let worker = worker.clone();
            let thread =
                thread::Builder::new().name(format!("worker-{core}")).spawn(move || work(runtime, queue, &worker))?;
            Ok((jobs, thread))
        });
        Ok(Self { threads: threads.collect::<io::Result<_>>()? })
    }

    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Hands every socket to a thread, and every thread a socket. There may be more or fewer inherited sockets than threads.
    pub fn serve(
        &self,
        sockets: &[ListeningSocket],
        address: &ListenAddress,
        listener: &Arc<ListenerState>,
        stopper: &AcceptStopper,
    ) -> io::Result<()> {
        let all = (0..sockets.len().max(self.threads.len())).zip(sockets.iter().cycle());
        for ((_, socket), (jobs, _)) in all.zip(self.threads.iter().cycle()) {
            let socket = socket.try_clone()?;
            let (address, listener, stop) = (address.clone(), Arc::clone(listener), stopper.stop());
            // Fails only when that thread is gone. The kernel then gives its connections to the others.
            drop(jobs.send(Job::Serve { socket, address, listener, stop }));
        }
        Ok(())
    }

    pub fn probe(&self) -> WorkerProbe {
        WorkerProbe(self.threads.iter().map(|(jobs, _)| jobs.downgrade()).collect())
    }

    /// Ends every thread, and with it the requests that it still serves.
    pub fn stop(self) {
        // Every channel closes before the first join: the threads finish their last settlements at the same time.
        let threads: Vec<_> = self.threads.into_iter().map(|(_, thread)| thread).collect();
        for thread in threads {
            drop(thread.join());
        }
    }
}

impl WorkerProbe {
    /// Returns when every thread has answered. Never returns while one is stuck.
    pub async fn all_answered(&self) {
        let answers: Vec<_> = self
            .0
            .iter()
            .filter_map(WeakUnboundedSender::upgrade)
            .map(|jobs| {
                let (answer, answered) = oneshot::channel();
                drop(jobs.send(Job::Ping(answer)));
                answered
            })
            .collect();
        for answered in answers {
            // A thread that has ended, as when the process ends, counts as one that answered.
            drop(answered.await);
        }
    }
}

/// The runtime of one thread, whose requests take [turns](turn).
fn runtime() -> io::Result<Runtime> {
    let mut runtime = runtime::Builder::new_current_thread();
    runtime.enable_all().on_thread_park(turn::begin_round);
    runtime.event_interval(POLLS_OF_A_ROUND).max_io_events_per_tick(EVENTS_OF_A_ROUND).build()
}

fn work(runtime: Runtime, mut queue: UnboundedReceiver<Job>, worker: &dyn Fn() -> Worker) {
    runtime.block_on(async {
        let Worker { fronts, settings } = worker();
        tokio::spawn(trim_allocator());
        while let Some(job) = queue.recv().await {
            match job {
                Job::Serve { socket, address, listener, stop } => {
                    let (settings, fronts) = (Arc::clone(&settings), fronts.clone());
                    tokio::spawn(listen::serve(socket, address, listener, settings, fronts, stop));
                }
                Job::Ping(answer) => drop(answer.send(())),
            }
        }
        fronts.finish().await;
    });
    // The exit does not wait for a name look-up that hangs in the system.
    runtime.shutdown_background();
}
