//! The data plane: one thread a core, each with a runtime of its own, so that a request lives and dies on one core.

use std::io;
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use tokio::runtime;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::listen;
use crate::listen::Connections;
use crate::listen::Door;

/// The threads that serve, and the way to hand them sockets.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<(UnboundedSender<Job>, JoinHandle<()>)>,
}

/// What one thread serves with: its gateway has connections to the applications that no other thread uses.
#[derive(Debug)]
pub struct Worker {
    pub gateway: Gateway,
    pub settings: Arc<ArcSwap<listen::Settings>>,
}

/// A socket to accept connections from until told to stop.
#[derive(Debug)]
struct Job {
    socket: TcpListener,
    door: Arc<Door>,
    connections: Connections,
    stop: CancellationToken,
}

/// As many threads as there are cores for this process.
pub fn count() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

impl Workers {
    /// Starts `count` threads; `worker` is called once on each.
    pub fn start(count: usize, worker: impl Fn() -> Worker + Clone + Send + 'static) -> io::Result<Self> {
        let threads = (0..count).map(|core| {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
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

    /// Hands each thread one of `sockets`, which share a door; what they accept is among `connections`.
    pub fn serve(
        &self,
        sockets: Vec<TcpListener>,
        door: &Arc<Door>,
        connections: &Connections,
        stop: &CancellationToken,
    ) {
        for ((jobs, _), socket) in self.threads.iter().zip(sockets) {
            // Fails only when that thread is gone, and then the kernel sends its connections to the others.
            let (door, connections, stop) = (Arc::clone(door), connections.clone(), stop.clone());
            drop(jobs.send(Job { socket, door, connections, stop }));
        }
    }

    /// Ends every thread, and with them whatever they still serve.
    pub fn stop(self) {
        // All of them first: each may have a last word to say, and they say it at the same time.
        let ending: Vec<_> = self.threads.into_iter().map(|(_, thread)| thread).collect();
        for thread in ending {
            drop(thread.join());
        }
    }
}

fn work(runtime: Runtime, mut queue: UnboundedReceiver<Job>, worker: &dyn Fn() -> Worker) {
    runtime.block_on(async {
        let Worker { gateway, settings } = worker();
        while let Some(Job { socket, door, connections, stop }) = queue.recv().await {
            let (settings, gateway) = (Arc::clone(&settings), gateway.clone());
            tokio::spawn(listen::serve(socket, door, settings, gateway, connections, stop));
        }
        gateway.finish().await;
    });
    // A name look-up that hangs in the system does not hold up the exit.
    runtime.shutdown_background();
}
