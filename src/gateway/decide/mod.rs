//! Decides a request by the rules, and applies what follows: bans that begin, proofs of work that are redeemed.

pub mod bans;
pub mod challenge;
pub mod descriptors;
pub mod record;
pub mod request;
