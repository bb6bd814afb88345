//! Decides a request by the rules, and applies what follows: bans that begin, proofs of work that are redeemed.

pub mod applied_limit;
pub mod bans;
pub mod challenge;
pub mod descriptors;
pub mod final_decision;
pub mod record;
pub mod request;
pub mod story;
pub mod suspected_bans;
pub mod timing;
