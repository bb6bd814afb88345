//! The limits in force, and the state of one key of a limit.

mod key_query;
mod key_state;
mod key_state_response;
mod limit_response;
mod list;
mod then;

pub(super) use self::key_state::hit;
pub(super) use self::key_state::key_state;
pub(super) use self::key_state::reset;
pub(super) use self::limit_response::on_failure_name;
pub(super) use self::list::list;
