//! HTTP/2 with one client. h2 keeps frames, windows and streams.
//!
//! The heads of requests are read here, before h2 sees them (`frame_tap`, `frame_filter`, `head_assembler`), so that a
//! malformed head is answered and no other stream is affected. Each request is a task of its own (`stream`), and becomes
//! a tunnel if it asked for one (`tunnel`).

pub(crate) mod hpack;

mod client_streams;
mod frame;
mod frame_budget;
mod frame_filter;
mod frame_tap;
mod head;
mod head_assembler;
mod interim;
mod open_stream;
mod pending_heads;
mod pending_tunnel;
mod response_head;
mod session;
mod stream;
mod stream_writer;
mod tunnel;
mod write_backlog;

pub(super) use self::frame::PREFACE;
pub(super) use self::interim::Http2InterimSender;
pub(super) use self::session::Http2Session;
pub(super) use self::tunnel::Http2Tunnel;
