//! The limits in force, and the state of one key of a limit.

mod key_query;
mod key_state;
mod key_state_response;
mod limit_response;
mod list;
mod routes;
mod then;
mod words;

pub(super) use self::routes::routes;
pub(super) use self::words::OnFailureWord;
