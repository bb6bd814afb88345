//! What the gateways on one Redis know of each other.
//!
//! Each gateway has one hash in Redis, and every few seconds writes the fields of it that have changed, in one command. A
//! gateway at rest writes nothing, but for a sign of life once a minute. So others know for an hour what a gateway has
//! counted until a few seconds before it died. A set names the gateways.
//!
//! A gateway that is asked what all of them know publishes a [`question`] on the channel on which gateways hear of bans and
//! resets. Every gateway that hears it writes at once what has changed, and notes in its [`presence`] which question that
//! answers. The gateway that asked reads until all have answered, 300 ms at most; [`silent_gateways`] knows which have not.
//! Where a gateway may not publish, it reads what was written within the last seconds.
//!
//! - [`records`]: the one type that the rest of the crate uses; [`writing`], [`asking`]: its two sides.
//! - [`written_fields`]: what of this gateway is in Redis already; [`server_clock`]: the time there.
//! - [`heard_questions`]: the questions that wait for an answer of this gateway.
//!
//! Nothing of it is in a request's way: tasks of the process write and read over a connection of their own, and a failure
//! opens no breaker. In a cluster all records are in one slot. They are encrypted under the key ring that all gateways
//! share, so a reader of Redis learns no address and no name from them. When another key begins, or Redis may have lost
//! what was there, a gateway writes all of it again.

mod asking;
mod field;
mod heard_questions;
mod presence;
mod question;
mod records;
mod server_clock;
mod silent_gateways;
mod writing;
mod written_fields;

pub use self::asking::GatewayRecords;
pub use self::field::Field;
pub use self::field::MAX_FIELD;
pub use self::heard_questions::HeardQuestions;
pub use self::heard_questions::QuestionsToAnswer;
pub use self::presence::Standing;
pub use self::question::MAX_ID;
pub(in crate::store) use self::question::Question;
pub use self::records::SharedRecords;
