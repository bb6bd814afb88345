//! Who asks most: the heaviest keys of each limit, and the heaviest clients, over the last minutes and hours.
//!
//! Each core counts into tables of its own, a minute at a time; once a second the process looks whether a minute is over and
//! puts what the cores counted together.

mod key_counts;
mod minute;
pub mod space_saving;
mod table;
mod tables;

pub use self::key_counts::CountsByKey;
pub use self::key_counts::KeyCounts;
pub use self::key_counts::Order;
pub use self::minute::KeyRecord;
pub use self::minute::MinuteRecord;
pub use self::table::KeyTable;
pub use self::tables::KeyTables;
