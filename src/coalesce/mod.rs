//! Joins small pieces of data, where each would cost more than its bytes.

mod body;
mod buffer;
mod writes;

pub use self::body::CoalescingBody;
pub use self::buffer::BodyBuffer;
pub use self::writes::poll_write_coalesced;
