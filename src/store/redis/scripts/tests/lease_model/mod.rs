//! Random histories of gateways that lease units of one key: the scripts in a real Redis under a given time, and what
//! gateways do with leases, each under a clock of its own. Messages are late, lost or come twice, gateways die, clocks
//! run too fast or too slow, and keys are reset. By no algorithm may more pass than it lets pass without leases.
//!
//! Each of the [`mutants`] breaks one rule of leases, and must be seen to let too many pass.

mod gateway;
mod judge;
mod mutants;
mod world;

use std::num::NonZeroU32;
use std::ops::Range;
use std::thread;

use gateway::gateways;
use mutants::Mutant;
use proptest::test_runner::Config;
use world::World;

use super::server::Keys;
use crate::rules::limit::Algorithm;

#[derive(Clone, Copy, Debug)]
enum History {
    Random,
    /// A lease is spent as late as its holder dares.
    LastMoment,
}

/// Plays histories with these seeds. Returns how many units were admitted in a window beyond its rate at most, and how many
/// requests passed by leases.
fn play(seeds: Range<u64>, mutant: Option<&'static Mutant>, history: History) -> (u32, u32) {
    let mut keys = Keys::new();
    keys.largest = 100_000;
    let mut leased = 0;
    for seed in seeds {
        let gateways = gateways(seed, world::LIVES);
        let algorithm = match history {
            History::Random => mutant.and_then(|mutant| mutant.algorithm).unwrap_or_else(|| of_seed(seed)),
            History::LastMoment => Algorithm::SlidingWindowLog,
        };
        let mut world = World::new(seed, algorithm, &mut keys, &gateways, mutant);
        match history {
            History::Random => world.play(),
            History::LastMoment => world.spend_at_the_last_moment(),
        }
        leased += world.leased;
        if world.over > 0 {
            assert!(mutant.is_some(), "seed {seed}: {algorithm:?} has let {} units too many pass", world.over);
            return (world.over, leased);
        }
    }
    (0, leased)
}

/// Half of the histories are of logs.
fn of_seed(seed: u64) -> Algorithm {
    let burst = NonZeroU32::new(if seed.is_multiple_of(4) { 2400 } else { 0 });
    match seed % 10 {
        0 => Algorithm::SlidingWindowCounter,
        1 => Algorithm::BucketedWindow { buckets: None },
        2 | 3 => Algorithm::FixedWindow,
        4 | 5 => Algorithm::TokenBucket { burst },
        _ => Algorithm::SlidingWindowLog,
    }
}

/// Plays that many random histories, in two threads. Returns how many requests passed by leases.
fn play_halves(first: u64, count: u64) -> u32 {
    let half = |first: u64| thread::spawn(move || play(first..first + count / 2, None, History::Random));
    let halves = [half(first), half(first + count / 2)];
    halves.into_iter().map(|half| half.join().expect("no window sees too many").1).sum()
}

#[test]
fn no_window_sees_more_than_its_rate() {
    let histories = 4 * Config::default().cases;
    let leased = play_halves(0, histories.into());
    assert!(leased > 4 * histories, "only {leased} requests passed by leases");
    assert_eq!(play(0..20, None, History::LastMoment), (0, 20));
}

#[test]
#[ignore = "measures"]
fn no_window_sees_more_than_its_rate_in_ten_thousand_histories() {
    play_halves(1000, 10_000);
    play(20..200, None, History::LastMoment);
}

#[test]
fn each_mutant_lets_too_many_pass() {
    for mutant in mutants::ALL {
        let history = if mutant.is_late() { History::LastMoment } else { History::Random };
        let (over, _) = play(0..1000, Some(mutant), history);
        assert!(over > 0, "no history shows that {}", mutant.rule);
    }
}
