//! Which part of every limit each gateway may grant while Redis is away, so that all parts are at most the whole at any
//! moment: while gateways start, end, crash, and lose their connection.
//!
//! Redis keeps a table: for each gateway its part, when it was heard of, and the number of its last call. Each gateway
//! calls the script `parts.lua` and says what it holds: once a minute, at once when another one says on the channel that it comes
//! or goes, and when Redis was restarted or emptied.
//!
//! - **A gateway shrinks first and tells then.** The answer says what would be fair, which is the same for all that are there.
//!   A holder of more takes less for itself at once, and its next call tells so. What it gave up is free from then on.
//! - **It grows only by what the script grants**, which is at most what is free. If the answer is lost, Redis has more in its
//!   table than the gateway uses, until the next call says what it holds. A call that arrives late, after a later one, is
//!   known by its number and changes nothing.
//! - **A part ends**: [`HELD_FOR`] after the gateway has *sent* the last call that was answered, by its own monotonic clock.
//!   Redis keeps it reserved for [`RESERVED_FOR`] after it was heard of, which is later, and longer by far more than clocks
//!   drift apart in that time. A gateway that is silent may be one that still decides and only lost Redis, so that
//!   nobody else is given its part before that.
//! - **Unless its process is over.** A gateway on the same machine can know that, see [`ProcessMark`], and tells Redis. So
//!   one that is started again after a crash need not wait.
//! - **A table that was lost grants nothing for 2 s**, and neither does one that another server wrote, which may be an old one:
//!   those that are there notice it, and tell what they hold. A gateway that does not reach Redis in these 2 s may lose its part
//!   to others, and uses it until its next answer.
//!
//! - [`part`]: a part, and what it is of a count.
//! - [`held`]: what this process holds: when it shrinks, grows and ends.
//! - [`process_mark`]: names a process so that others on its machine know when it is over.

mod held;
mod part;
mod process_mark;

pub use self::held::HELD_FOR;
pub use self::held::HeldPart;
pub use self::held::NextCall;
pub use self::held::PartAnswer;
pub use self::held::PartCall;
pub use self::held::RESERVED_FOR;
pub use self::part::Part;
pub use self::part::WHOLE;
pub use self::process_mark::ProcessMark;
