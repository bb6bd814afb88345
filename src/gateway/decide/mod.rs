//! What the rules say of a request, with all that follows from it: bans that begin, work that was done.

pub mod bans;
pub mod challenge;
pub mod final_decision;
pub mod record;
pub mod subject;
pub mod suspected_bans;
