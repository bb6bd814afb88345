//! Converts the configurations of other programs.

pub mod ratelimit;
