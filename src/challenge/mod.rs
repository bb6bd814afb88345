//! Proof of work: the question that a client gets, and the check of its solution. No state is kept between the two.
//!
//! A [`ChallengeToken`] is signed for one key of one limit and says when it expires and how hard it is. Its solution is
//! a counter such that SHA-256 of `TOKEN.COUNTER` begins with so many zero bits. The proof is `TOKEN.COUNTER`. A store
//! says whether a proof was used before, by its [`VerifiedProof::id`].

pub mod proof;
pub mod token;

pub use self::proof::REPLAY_WINDOW;
pub use self::proof::VerifiedProof;
pub use self::proof::is_solution;
pub use self::proof::verify;
pub use self::token::ChallengeToken;
pub use self::token::DIFFICULTY;
pub use self::token::LIFETIME;
