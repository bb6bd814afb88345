//! A client of `CrowdSec`'s Local API: follows its decisions as a bouncer, and reports bans as a machine.
//!
//! The API and its words are `CrowdSec`'s: a *decision* bans a *value*, such as an address, of a *scope*, and was made by an
//! *origin*. A *bouncer* reads decisions with its key. A *machine* logs in with a password and reports *alerts*, which hold decisions.

pub mod alert;
pub mod bouncer;
mod bounded_reader;
pub mod decision;
pub mod decision_stream;
pub mod duration;
pub mod known_decisions;
pub mod lapi;
pub mod lapi_url;
pub mod list_source;
pub mod machine;
pub mod secret;

pub use self::alert::Alert;
pub use self::bouncer::Bouncer;
pub use self::decision::Decision;
pub use self::decision::DecisionType;
pub use self::decision::ORIGIN;
pub use self::decision::Subject;
pub use self::decision_stream::DecisionStream;
pub use self::known_decisions::KnownDecisions;
pub use self::lapi::Lapi;
pub use self::lapi::LapiError;
pub use self::lapi_url::InvalidLapiUrl;
pub use self::lapi_url::LapiUrl;
pub use self::list_source::ListSource;
pub use self::machine::Machine;
pub use self::machine::Reporter;
pub use self::secret::Secret;
