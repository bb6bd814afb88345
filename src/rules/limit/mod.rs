//! Limits, and the algorithms that count for them.

pub mod action;
mod bucketed;
pub mod definition;
mod distinct;
mod fixed_window;
pub mod rate;
mod sliding_counter;
mod sliding_log;
pub mod state;
mod token_bucket;
mod window;

pub use self::action::{Action, ActionSeverity, ChallengeKind, ChannelId, DenyResponse, Ladder, Rung, Then};
pub use self::definition::{
    Algorithm, AlgorithmName, Count, DescriptorFilter, DescriptorMismatch, Detail, EntrySet, InvalidRule, Limit,
    LimitId, Missing, OnFailure, ResetOutcome, Rule,
};
pub use self::rate::{InvalidRate, Rate, Rates};
pub use self::state::{Standing, Standings, State};
