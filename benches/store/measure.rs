//! Makes decisions as a gateway does: over one connection, with many callers at a time.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use portcullis::rules::decision::batch::Items;
use portcullis::rules::decision::{Batch, Charge};
use portcullis::rules::key::KeyHash;
use portcullis::rules::limit::{Algorithm, Count, Rule};
use portcullis::store::Observer;
use portcullis::store::redis::{HashSlot, Mode, RedisSettings, RedisStore, Time};
use tokio::runtime::{Builder, Runtime};

use crate::server::Server;

#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) rates: &'static str,
    /// How much each key has counted at the start.
    pub(crate) before: u32,
    pub(crate) keys: u32,
    /// How many limits each decision is about, each with a key of its own.
    pub(crate) limits: u32,
    /// How many decisions are under way at a time, so that as many commands are in one write.
    pub(crate) callers: u32,
}

pub(crate) struct Row {
    /// Decisions a second.
    pub(crate) rate: f64,
    /// CPU time of Redis for each decision, in microseconds.
    pub(crate) cpu: f64,
}

/// As many callers as there are connections in the throughput bench.
pub(crate) const CALLERS: u32 = 64;

/// Times decisions for this span.
pub(crate) fn decisions(server: &Server, setting: &Setting, span: Duration) -> Row {
    if setting.before > 0 {
        fill(server, setting.rates, setting.keys, setting.before);
    }
    let (runtime, store) = store(server);
    let rule = rule(setting.rates, 1);
    let cpu = || server.info("used_cpu_user") + server.info("used_cpu_sys");
    let (decided, before, begun) = (Cell::new(0_u32), cpu(), Instant::now());
    let caller = async || {
        while begun.elapsed() < span {
            for _ in 0..16 {
                let number = decided.replace(decided.get() + 1);
                let first = number.wrapping_mul(0x9e37_79b9) % setting.keys;
                decide(&store, &rule, first..first + setting.limits, &[]).await;
            }
        }
    };
    runtime.block_on(join_all((0..setting.callers).map(|_| caller())));
    let decided = f64::from(decided.get());
    Row { rate: decided / begun.elapsed().as_secs_f64(), cpu: (cpu() - before) * 1e6 / decided }
}

/// Counts `units` under each of so many keys.
pub(crate) fn fill(server: &Server, rates: &str, keys: u32, units: u32) {
    // In several charges, as logs grow.
    let parts = [units / 3, units / 3, units - 2 * (units / 3)].map(|units| rule(rates, units.max(1)));
    charge_all(server, if units < 3 { &parts[2..] } else { &parts[..] }, keys, 1);
}

/// Charges each of these rules under each of so many keys: of different values so many.
pub(crate) fn charge_all(server: &Server, rules: &[Rule], keys: u32, values: u64) {
    let (runtime, store) = store(server);
    let next = Cell::new(0);
    let caller = async || {
        while next.get() < keys {
            let number = next.replace(next.get() + 1);
            for rule in rules {
                for value in 0..values {
                    decide(&store, rule, number..number + 1, &[value]).await;
                }
            }
        }
    };
    runtime.block_on(join_all((0..CALLERS).map(|_| caller())));
}

/// Decides about the keys of these numbers together.
async fn decide(store: &RedisStore, rule: &Rule, numbers: Range<u32>, values: &[u64]) {
    let items: Items = if matches!(rule, Rule::Distinct(_)) { values.into() } else { Items::new() };
    let charges = numbers.map(|number| Charge {
        // Attempts are charged whether or not they pass, so each decision writes.
        count: Count::Attempts,
        items: items.clone(),
        ..Charge::new(0, spread(number), rule)
    });
    let batch = Batch { charges: charges.collect(), ..Batch::default() };
    assert!(store.decide(&batch, false, |_| false).await.verdicts.iter().all(Option::is_some), "Redis answers");
}

/// The key of this number, spread as hashes are.
pub(crate) fn spread(number: u32) -> KeyHash {
    KeyHash(u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn store(server: &Server) -> (Runtime, RedisStore) {
    let settings = RedisSettings {
        urls: vec![server.url().parse().expect("an address")],
        mode: Mode::Single,
        timeout: Duration::from_secs(5),
        password_file: None,
        wait: 0,
        key_prefix: "portcullis".to_owned(),
        hash_slot: HashSlot::Key,
    };
    let store = RedisStore::new(settings, Time::OfServer, Arc::new(Unobserved));
    (Builder::new_current_thread().enable_all().build().expect("a runtime"), store)
}

pub(crate) fn rule(rates: &str, cost: u32) -> Rule {
    let cost = NonZeroU32::new(cost).expect("above zero");
    Rule::Rates { algorithm: Algorithm::SlidingWindowLog, rates: rates.parse().expect("rates"), cost }
}

#[derive(Debug)]
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    fn round_trip(&self, _span: Duration) {}

    fn failed(&self, _cause: &'static str) {}

    fn went_down(&self) {}

    fn overloaded(&self) {}
}
