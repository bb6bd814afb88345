//! What it costs that operators have the dashboard open: ten pages during an attack.

use std::io;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::against_first::Row;
use super::job::Job;
use super::measure::Plan;
use super::peer::{Peer, Start};
use super::process::{Cores, Process};
use super::proxy::{Proxy, Setup};
use super::{measure, table};

const JOBS: [Job; 2] = [job("refused", "/refused", 429), job("proxied", "/", 200)];

const fn job(name: &'static str, path: &'static str, status: u16) -> Job {
    Job { setup: Setup::Watched, ..Job::new(name, path, status) }
}

/// How many are open.
const PAGES: usize = 10;

/// The pages ask several times in a round.
const SHORTEST_ROUND: Duration = Duration::from_secs(5);

/// Measures each job without pages and with them.
pub(crate) fn run(plan: &Plan) {
    let (application, address) = Process::of_this_program(Cores::Second, &["application", "1"]);
    let peer = Peer::start(Start::new(Proxy::PORTCULLIS, Setup::Watched, &address));
    measure::first_answer(peer.address, Instant::now());
    for job in JOBS {
        let mut rows = ["no page is open", "ten pages are open"].map(|name| Row { name, cpu: Vec::new() });
        for round in 0..plan.rounds {
            for (row, is_open) in rows.iter_mut().zip([false, true]) {
                let pages = is_open
                    .then(|| Process::of_this_program(Cores::Second, &["pages", &peer.admin_address.to_string()]));
                let spent = measure::spent(&peer, job, plan.round.max(SHORTEST_ROUND), Cores::Second);
                drop(pages);
                eprintln!("round {round}, {}, {}: {}", job.name, row.name, spent.told);
                row.cpu.push(spent.micros);
            }
        }
        table::print_against_first(plan, &format!("portcullis, one core, 64 connections, {}", job.name), &rows);
    }
    drop((peer, application));
}

/// Opens the pages, says so, and holds them until its input ends.
pub(crate) fn open(admin: SocketAddr) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for _ in 0..PAGES {
        runtime.spawn(follow_events(admin));
        runtime.spawn(ask_again_and_again(admin));
    }
    println!("{PAGES}");
    io::stdout().flush().expect("someone waits for it");
    let _ = runtime.block_on(spawn_blocking(|| io::stdin().read(&mut [0])));
}

/// What a page asks for to be up to date.
const QUESTIONS: [&str; 7] = [
    "/api/v1/limits",
    "/api/v1/history?minutes=60",
    "/api/v1/top?n=1",
    "/api/v1/status",
    "/api/v1/bans",
    "/api/v1/top?by=denied&minutes=10&n=20",
    "/api/v1/requests?n=50",
];

/// How often a page asks while there are events.
const REFRESH: Duration = Duration::from_secs(2);

type Browser = Client<HttpConnector, Empty<Bytes>>;

async fn ask_again_and_again(admin: SocketAddr) {
    let browser: Browser = Client::builder(TokioExecutor::new()).build_http();
    loop {
        for question in QUESTIONS {
            get(&browser, admin, question).await.collect().await.expect("a whole answer");
        }
        sleep(REFRESH).await;
    }
}

async fn follow_events(admin: SocketAddr) {
    let browser: Browser = Client::builder(TokioExecutor::new()).build_http();
    let mut events = get(&browser, admin, "/api/v1/events").await;
    while let Some(frame) = events.frame().await {
        frame.expect("a stream without an end");
    }
}

async fn get(browser: &Browser, admin: SocketAddr, path: &str) -> Incoming {
    let address = format!("http://{admin}{path}").parse().expect("an address");
    let answer = browser.get(address).await.expect("an answer");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    answer.into_body()
}
