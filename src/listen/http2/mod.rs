//! HTTP/2 with one client. h2 keeps frames, windows and streams.
//!
//! The heads of requests are read here, before h2 sees them (`frame_tap`, `frame_filter`, `head_assembler`), so that a
//! malformed head is answered and no other stream is affected; and those of responses are written here, behind h2
//! (`frame_writer`). h2 has stubs in their places. Each request is a task of its own (`stream`), and becomes
//! a tunnel if it asked for one (`tunnel`).

mod frame_filter;
mod frame_tap;
mod frame_writer;
mod head;
mod head_assembler;
mod session;
mod stream;
mod tunnel;

pub(super) use self::session::Http2Session;
pub(super) use self::stream::Http2InterimSender;
pub(super) use self::tunnel::Http2Tunnel;
