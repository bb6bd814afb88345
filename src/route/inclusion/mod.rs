//! Whether one condition holds for every request that another one holds for: then the later of two routes is never
//! taken.

mod condition;
mod pattern;
mod unreachable;

pub use self::unreachable::UnreachableRoute;
pub use self::unreachable::unreachable_routes;
