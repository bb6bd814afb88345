//! How much more two cores serve than one.
//!
//! The load and the application need cores too. So all three run on one core, each with one thread, and then on two,
//! each with two threads: a machine of one core and one of twice as many. What its load and application make of the
//! second core is in the requests per second; CPU time per request is the proxy's own. Two workers serve twice as much
//! as one if no request costs them more than it cost the one.

use std::time::Instant;

use super::job::{Clients, Job};
use super::measure::Plan;
use super::peer::{Peer, Start};
use super::process::{Cores, Process};
use super::proxy::{Proxy, Setup};
use super::{measure, table};

/// Many clients: no two cores meet for one client's sake.
const JOB: Job = Job {
    clients: Clients::Addresses,
    connections: 128,
    ..Job::new("proxied, a limit that does not bind, 128 clients", "/", 200)
};

/// What was measured of one proxy: two cores against one, a ratio for each round.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) proxy: Proxy,
    pub(crate) per_second: Vec<f64>,
    pub(crate) cpu: Vec<f64>,
    /// What the busier of two workers has done of the work.
    pub(crate) busiest: Vec<f64>,
}

/// Measures and prints it.
pub(crate) fn run(plan: &Plan, proxies: &[Proxy]) {
    let proxies = measure::installed(proxies, Setup::Limits);
    let machines = [Cores::First, Cores::Both].map(|cores| {
        let (application, address) = Process::of_this_program(cores, &["application", &cores.count().to_string()]);
        let start = |proxy: &Proxy| Peer::start(Start { cores, ..Start::new(*proxy, Setup::Limits, &address) });
        let peers: Vec<Peer> = proxies.iter().map(start).collect();
        for peer in &peers {
            measure::first_answer(peer.address, Instant::now());
        }
        (cores, application, peers)
    });
    let row = |proxy| Row { proxy, per_second: Vec::new(), cpu: Vec::new(), busiest: Vec::new() };
    let mut rows: Vec<Row> = proxies.iter().copied().map(row).collect();
    for round in 0..plan.rounds {
        for (index, row) in rows.iter_mut().enumerate() {
            let [one, two] = machines.each_ref().map(|(cores, _, peers)| {
                let spent = measure::spent(&peers[index], JOB, plan.round, *cores);
                eprintln!("round {round}, {}, {cores:?}: {} {}", JOB.name, row.proxy.name, spent.told);
                spent
            });
            row.per_second.push(two.requests / one.requests);
            row.cpu.push(two.micros / one.micros);
            row.busiest.push(two.busiest);
        }
    }
    drop(machines);
    table::print_cores(plan, &rows);
}
