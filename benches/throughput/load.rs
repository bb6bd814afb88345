//! The load: connections, each with so many requests under way at any time, and what came of them.

mod browser;
mod connect;
mod grpc;
mod http1;
mod http2;
mod turns;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{io, thread};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::runtime;
use tokio::task::JoinSet;

pub(crate) use self::browser::Sends;
use self::connect::Dialer;
pub(crate) use self::connect::SITE;
use self::http1::Asking;
pub(crate) use self::http1::{content_length, page_request};
use self::http2::Question;
pub(crate) use self::turns::Ends;
use self::turns::Turns;
use super::job::{Job, Over};

/// What is to be sent where, for how long.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    /// The file with the certificate to expect there.
    pub(crate) site: PathBuf,
    pub(crate) job: Job,
    pub(crate) ends: Ends,
    /// Connections are divided among so many threads.
    pub(crate) threads: usize,
}

impl Load {
    /// As an argument of this program; [`Load::read`] reads it.
    pub(crate) fn argument(&self) -> String {
        serde_json::to_string(self).expect("a text")
    }

    pub(crate) fn read(argument: &'static str) -> &'static Self {
        Box::leak(Box::new(serde_json::from_str(argument).expect("a load")))
    }

    /// Requests that are counted one by one need none.
    fn warm_up(&self) -> Duration {
        match self.ends {
            Ends::After(_) => self.job.warm_up(),
            Ends::Requests(_) => Duration::ZERO,
        }
    }
}

/// Runs the load and prints what came of it in one line; before it, a line when the warm-up is over, if the job has one.
pub(crate) fn run(load: &'static Load) {
    let warm_up = load.warm_up();
    let turns = Turns::new(warm_up, load.ends);
    let share = |thread| (thread..load.job.connections).step_by(load.threads);
    let run_share = |thread| {
        let turns = turns.clone();
        thread::spawn(move || run_some(load, share(thread), &turns))
    };
    let threads: Vec<_> = (0..load.threads).map(run_share).collect();
    if !warm_up.is_zero() {
        thread::sleep(warm_up);
        println!("warm");
    }
    let mut all = Outcome::default();
    for thread in threads {
        all.add(thread.join().expect("no panic in a thread"));
    }
    all.latencies.sort_unstable();
    println!("{} {} {} {}", all.requests, all.wrong, all.percentile(50), all.percentile(99));
}

/// What was asked and got.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    requests: u64,
    /// Answers with another status or of another media type than expected, and connections that broke.
    wrong: u64,
    /// Microseconds.
    latencies: Vec<u32>,
}

impl Outcome {
    fn note(&mut self, sent: Instant, is_right: bool) {
        self.requests += 1;
        self.wrong += u64::from(!is_right);
        self.latencies.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.wrong += other.wrong;
        self.latencies.extend(other.latencies);
    }

    /// Latency below which so many percent of the requests stayed, in microseconds, once they are sorted.
    fn percentile(&self, percent: usize) -> u32 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(last * percent / 100).copied().unwrap_or_default()
    }
}

fn run_some(load: &'static Load, connections: impl Iterator<Item = usize>, turns: &Turns) -> Outcome {
    let dialer = Dialer::new(load);
    let asking = Asking::new(load.job, turns.clone());
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut running = JoinSet::new();
        for client in connections {
            let client = u16::try_from(client).expect("fewer connections");
            running.spawn(ask(dialer.clone(), load, client, asking.clone()));
        }
        let mut all = Outcome::default();
        while let Some(one) = running.join_next().await {
            all.add(one.expect("no panic in a connection"));
        }
        all
    })
}

/// Asks on a connection, and on another one when it has ended.
async fn ask(dialer: Dialer, load: &'static Load, client: u16, mut asking: Asking) -> Outcome {
    let mut outcome = Outcome::default();
    while !asking.turns().are_over() {
        if ask_on_one(&dialer, load, client, &mut asking, &mut outcome).await.is_err() {
            outcome.wrong += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    outcome
}

async fn ask_on_one(
    dialer: &Dialer,
    load: &'static Load,
    client: u16,
    asking: &mut Asking,
    outcome: &mut Outcome,
) -> io::Result<()> {
    match load.job.over {
        Over::Tcp | Over::ForwardAuth => asking.on(&mut dialer.tcp(client).await?, usize::MAX, outcome).await,
        Over::Tls => asking.on(&mut dialer.tls(client).await?, usize::MAX, outcome).await,
        Over::FreshTls => {
            let mut stream = dialer.tls(client).await?;
            asking.on(&mut stream, 1, outcome).await;
            stream.shutdown().await?;
        }
        Over::Http2(streams) => {
            let stream = dialer.tls(client).await?;
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]), "the two agree on HTTP/2");
            outcome.add(http2::ask(stream, Question::of_a_browser(load.job), streams, asking.turns()).await);
        }
        Over::Grpc(call, streams) => {
            let question = grpc::question(call, load.job);
            outcome.add(http2::ask(dialer.tcp(client).await?, question, streams, asking.turns()).await);
        }
    }
    Ok(())
}

/// Opens the connections of a job, one after the other, and asks once on each.
pub(crate) async fn open(load: &'static Load) -> Vec<Box<dyn Stream>> {
    let dialer = Dialer::new(load);
    let (request, mut buffer) = (page_request(load.job.path), Vec::new());
    let mut open: Vec<Box<dyn Stream>> = Vec::with_capacity(load.job.connections);
    for _ in 0..load.job.connections {
        let mut stream: Box<dyn Stream> = match load.job.over {
            Over::Tcp | Over::ForwardAuth => Box::new(dialer.tcp(0).await.expect("the proxy accepts")),
            _ => Box::new(dialer.tls(0).await.expect("the proxy shakes hands")),
        };
        http1::ask(&mut stream, &request, &mut buffer).await.expect("an answer");
        open.push(stream);
    }
    open
}

/// A connection of any kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}
