//! Limits, and the algorithms that count for them.

pub mod action;
pub mod algorithm;
pub mod definition;
pub mod descriptor_filter;
pub mod ladder;
mod memory;
pub mod rate;
pub mod rule;
mod standing;
pub mod state;

mod bucketed;
mod concurrency;
mod distinct;
mod fixed_window;
mod fraction;
mod ring;
mod sliding_counter;
mod sliding_log;
mod token_bucket;
mod window;

pub use self::action::Action;
pub use self::action::ActionSeverity;
pub use self::action::ChannelId;
pub use self::action::DenyResponse;
pub use self::action::Then;
pub use self::algorithm::Algorithm;
pub use self::definition::Detail;
pub use self::definition::Limit;
pub use self::definition::LimitId;
pub use self::definition::Missing;
pub use self::definition::OnFailure;
pub use self::descriptor_filter::DescriptorFilter;
pub use self::descriptor_filter::DescriptorMismatch;
pub use self::descriptor_filter::EntrySet;
pub use self::ladder::Ladder;
pub use self::ladder::Rung;
pub use self::rate::InvalidRate;
pub use self::rate::Rate;
pub use self::rate::Rates;
pub use self::rule::Count;
pub use self::rule::InvalidRule;
pub use self::rule::Rule;
pub use self::standing::Standing;
pub use self::standing::Standings;
pub use self::state::State;
