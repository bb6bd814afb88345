//! Decides a request by the rules, and applies what follows: bans that begin, proofs of work that are redeemed.

pub mod applied_limit;
pub mod bans;
pub mod challenge;
pub mod facts;
pub mod final_decision;
pub mod record;
pub mod suspected_bans;
