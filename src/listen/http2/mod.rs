//! HTTP/2 with one client. Frames, windows and streams are h2's; the heads of requests are read here, before it sees
//! them (`frame_tap`, `frames`, `heads`), so that a malformed one is answered and no other stream notices. Each request is
//! a task of its own (`stream`), and a tunnel once it asked for one (`tunnel`).

mod ahead;
mod answer;
mod conversation;
mod frame_budget;
mod frame_tap;
mod frames;
mod head;
mod heads;
pub(crate) mod hpack;
mod sending;
mod stream;
mod tunnel;
mod unwritten;
mod waiting;

pub(super) use self::ahead::Ahead;
pub(super) use self::conversation::Conversation;
pub(super) use self::frames::PREFACE;
pub(super) use self::tunnel::Tunnel;
