//! Small pieces made one, where each would cost more than it holds.

mod body;
mod parts;
mod writes;

pub use self::body::Gathering;
pub use self::parts::Parts;
pub use self::writes::poll_write_gathered;
