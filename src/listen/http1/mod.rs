//! HTTP/1.1 with one client: a head is read, the request answered, and what of a connection is held in between is
//! given back before the next one.
//!
//! All of it is one future without a task or a channel of its own. The body of a request reads from the connection
//! itself, through the `Wire` that the two share; the next part of an answer is asked for when the client has taken
//! what it was sent.

mod ahead;
mod answer;
mod body;
mod buffer_pool;
mod conversation;
pub(crate) mod head;
mod reader;
mod sending;
mod tunnel;
mod wire;

pub(super) use self::ahead::Ahead;
pub(super) use self::body::Body;
pub(super) use self::buffer_pool::poll_read;
pub(super) use self::conversation::Conversation;
pub(super) use self::conversation::End;
pub(super) use self::tunnel::Tunnel;
