//! HTTP/1.1 with one client: a head is read, the request is answered, and the memory of a request is released before the
//! next one.
//!
//! A session is one future, without tasks or channels of its own. The body of a request reads from the connection
//! through the `SharedChannel`. The next part of a response is polled when the client has taken the parts before.

mod body;
mod head_reader;
mod interim;
mod read_buffer;
mod response_writer;
mod session;
mod session_end;
mod shared_channel;
mod tunnel;

pub(super) use self::body::Http1RequestBody;
pub(super) use self::interim::Http1InterimSender;
pub(super) use self::read_buffer::poll_read;
pub(super) use self::session::Http1Session;
pub(super) use self::session_end::SessionEnd;
pub(super) use self::tunnel::Http1Tunnel;
