//! A client of `CrowdSec`'s Local API: follows its decisions as a bouncer, and reports bans as a machine.
//!
//! The API and its words are `CrowdSec`'s: a *decision* bans a *value*, such as an address, of a *scope*, and was made by an
//! *origin*. A *bouncer* reads decisions with its key. A *machine* logs in with a password and reports *alerts*, which hold decisions.

pub mod bouncer;
pub mod decision;
pub mod decision_stream;
pub mod lapi;

pub use self::bouncer::{Bouncer, KnownDecisions, ListSource};
pub use self::decision::{Decision, DecisionType, ORIGIN, Subject};
pub use self::decision_stream::DecisionStream;
pub use self::lapi::{Alert, InvalidLapiUrl, Lapi, LapiError, LapiUrl, Machine, Reporter, Secret};
