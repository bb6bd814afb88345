//! Proof of work: what a client is asked, without anyone remembering that it was, and whether it has the answer.
//!
//! A [`ChallengeToken`] is signed for one key of one limit and says when it ends and how hard it is. Its solution is a counter
//! such that SHA-256 of `TOKEN.COUNTER` begins with so many zero bits; those two, with the point between, are the proof.
//! Whether a proof was used before is for a store to say, by its [`VerifiedProof::id`].

pub mod proof;
pub mod token;

use std::time::Duration;

pub use self::proof::VerifiedProof;
pub use self::proof::is_solution;
pub use self::proof::verify;
pub use self::token::ChallengeToken;

/// The zero bits asked for: a second or so of a browser, a tenth of that for a program.
pub const DIFFICULTY: u8 = 19;

/// How long a token is good for: the slowest device is done by then.
pub const LIFETIME: Duration = Duration::from_secs(5 * 60);

/// How long it is to be remembered that a proof was used: longer than the clocks of gateways are apart.
pub const REPLAY_WINDOW: Duration = Duration::from_secs(15 * 60);
