//! What the admin API answers, once: [`admin`](crate::admin) makes and serves it, the commands of
//! [`cli::remote`](crate::cli) and the dashboard read it.
//!
//! | file | what it describes |
//! | --- | --- |
//! | [`status`] | how the gateway is |
//! | [`verdict`] | what that means, in one word and one sentence |
//! | [`limits`] | the limits, and the state of one key |
//! | [`bans`] | the bans |
//! | [`events`] | what happened, and who asks most |
//! | [`problem`] | why a request to the API failed, and how a reload ended |
//!
//! Two answers are described where they are made: the story of a request, which gateways also send to each other, in
//! [`record::kept_requests`](crate::record::kept_requests), and the history, which only the dashboard reads.

pub mod bans;
pub mod events;
pub mod limits;
pub mod problem;
pub mod status;
pub mod verdict;

pub use self::status::{
    Advice, AwayServer, Certificate, Configuration, Fault, FollowedList, Gateway, GatewayState, InOutage,
    LivenessResponse, LivenessWord, ReadinessResponse, ReadinessWord, Reload, ReloadResult, Server, Status, Store,
    Traffic, Upstream,
};
pub use self::verdict::{Denials, Level, Lock, LockedBy, Verdict, VerdictPart};
