//! HTTP/1.1 with one client: a head is read, the request is answered, and the memory of a request is released before the
//! next one.
//!
//! A session is one future, without tasks or channels of its own. The body of a request reads from the connection
//! through the `SharedChannel`. The next part of a response is polled when the client has taken the parts before.

mod body;
mod head_reader;
mod response_writer;
mod session;
mod shared_channel;

pub(super) use self::body::{Http1RequestBody, Http1Tunnel};
pub(super) use self::head_reader::poll_read;
pub(super) use self::response_writer::Http1InterimSender;
pub(super) use self::session::{Http1Session, SessionEnd};
