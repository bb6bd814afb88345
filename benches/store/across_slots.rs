//! How long a decision takes whose keys are in different slots of a Redis Cluster that is some way off.

use std::time::{Duration, Instant};

use portcullis::rules::decision::{Batch, Charge, Verdict};
use portcullis::rules::key::{CLIENT_DIGITS, KeyHash};
use portcullis::rules::limit::{OnFailure, Rule};
use portcullis::store::redis::HashSlot;
use portcullis::store::{Failover, Store};
use tokio::runtime::Builder;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cluster::Cluster;
use crate::measure::{rule, spread};

/// How much of its limit each key has used.
#[derive(Clone, Copy)]
enum Used {
    /// No decision had this key before.
    Nothing,
    /// Less than half.
    Little,
    /// More than half, so that this gateway asks for one after the other where they are in different slots.
    Much,
}

/// So many of its limit a key has used at first.
const MUCH: usize = 60;

/// So many decisions pass before a key has used half of its limit, or all of it.
const RATES: &str = "100/hour";

/// So many decisions for one set of keys, so that a set stays on its side of half of the limit.
const DECISIONS: usize = 30;

const SETS: u32 = 10;

/// Prints how long decisions take.
pub(crate) fn measure() {
    let cluster = Cluster::start();
    let round_trip = median(cluster.round_trips());
    println!("{:34} {:>12}", "one round trip", format!("{:.2} ms", round_trip.as_secs_f64() * 1e3));
    println!(
        "{:34} {:>12} {:>12} {:>12} {:>12}",
        "a decision, in round trips", "fresh keys", "with room", "near limit", "one client"
    );
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (store, _watch) = gateway(&cluster, HashSlot::Key).await;
        let (of_clients, _watch) = gateway(&cluster, HashSlot::Client).await;
        let mut apart = (1_u32..).map(spread);
        let mut together = (1_u32..).map(|number| KeyHash(spread(number).0 >> (4 * CLIENT_DIGITS)));
        for limits in [1, 2, 4, 8] {
            let mut apart = || apart.by_ref().take(limits).collect();
            let together = || together.by_ref().take(limits).collect();
            let took = [
                median_of_sets(&store, Used::Nothing, &mut apart).await,
                median_of_sets(&store, Used::Little, &mut apart).await,
                median_of_sets(&store, Used::Much, &mut apart).await,
                median_of_sets(&of_clients, Used::Much, together).await,
            ];
            let [fresh, roomy, near, one_client] = took.map(|took| took.as_secs_f64() / round_trip.as_secs_f64());
            println!("limits: {limits:26} {fresh:>12.2} {roomy:>12.2} {near:>12.2} {one_client:>12.2}");
        }
    });
}

/// The store of a gateway that has decided at every server, so that it has connections and the servers have the script.
async fn gateway(cluster: &Cluster, hash_slot: HashSlot) -> (Failover, DropGuard) {
    let store = cluster.store(hash_slot);
    let stop = CancellationToken::new();
    tokio::spawn(store.watch(stop.clone()));
    store.shared().first_contact(Duration::from_secs(10)).await;
    let keys: Vec<KeyHash> = (0..64).map(|number| KeyHash(spread(number).0.rotate_left(64))).collect();
    decisions(&store, &keys, &rule(RATES, 1), 1).await;
    (store, stop.drop_guard())
}

/// The median of decisions of several sets of such keys.
async fn median_of_sets(store: &Failover, used: Used, mut keys: impl FnMut() -> Vec<KeyHash>) -> Duration {
    let mut spans = Vec::new();
    for _ in 0..SETS {
        spans.extend(timed(store, used, &mut keys).await);
    }
    median(spans)
}

/// How long decisions of such keys take, each of which passes.
async fn timed(store: &Failover, used: Used, mut keys: impl FnMut() -> Vec<KeyHash>) -> Vec<Duration> {
    let one = rule(RATES, 1);
    match used {
        Used::Nothing => {
            let mut spans = Vec::new();
            for _ in 0..DECISIONS {
                spans.extend(decisions(store, &keys(), &one, 1).await);
            }
            spans
        }
        Used::Little => {
            let keys = keys();
            decisions(store, &keys, &one, 1).await;
            decisions(store, &keys, &one, DECISIONS).await
        }
        Used::Much => {
            let keys = keys();
            decisions(store, &keys, &one, MUCH).await;
            decisions(store, &keys, &one, DECISIONS).await
        }
    }
}

async fn decisions(store: &Failover, keys: &[KeyHash], rule: &Rule, times: usize) -> Vec<Duration> {
    let charges = keys.iter().map(|key| Charge { on_failure: OnFailure::Deny, ..Charge::new(0, *key, rule) });
    let batch = Batch { charges: charges.collect(), ..Batch::default() };
    let mut spans = Vec::with_capacity(times);
    for _ in 0..times {
        let begun = Instant::now();
        let verdicts = store.decide(&batch).await.expect("the cluster answers");
        spans.push(begun.elapsed());
        assert!(verdicts.iter().all(Verdict::passes), "the keys have room");
    }
    spans
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans[spans.len() / 2]
}
