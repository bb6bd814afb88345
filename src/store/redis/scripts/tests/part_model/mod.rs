//! Random histories of gateways that share the parts of one store: the script in a real Redis under a given time, and what
//! gateways hold, each under a clock of its own. Gateways start, end, crash and lose Redis for an hour; messages are late, lost
//! or come after later ones; clocks run too fast or too slow; Redis is away, or loses its data. The parts may never be more than
//! the whole, and must be equal 10 s after the last of this.
//!
//! Each of the [`mutants`] breaks one rule of parts, and must be seen to give away more than there is.

mod mutants;
mod world;

use std::ops::Range;

use mutants::Mutant;
use proptest::test_runner::Config;
use world::World;

use super::server::Keys;

/// Plays histories with these seeds until one shows parts of more than the whole. Returns the seed.
fn play(seeds: Range<u64>, mutant: Option<&'static Mutant>) -> Option<u64> {
    let mut keys = Keys::new();
    seeds.into_iter().find(|seed| {
        let mut world = World::new(*seed, &mut keys, mutant);
        world.play();
        world.is_over
    })
}

#[test]
fn all_parts_are_at_most_the_whole_and_settle() {
    assert_eq!(play(0..u64::from(4 * Config::default().cases), None), None);
}

#[test]
#[ignore = "measures"]
fn all_parts_are_at_most_the_whole_in_thousands_of_histories() {
    assert_eq!(play(1000..10_000, None), None);
}

#[test]
fn each_mutant_gives_away_more_than_there_is() {
    for mutant in mutants::ALL {
        assert!(play(0..2000, Some(mutant)).is_some(), "no history shows that {}", mutant.rule);
    }
}
