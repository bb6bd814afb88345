//! A configuration without a file: `run --upstream URL --limit 'POST /login client_ip 5/minute'`, built through the same
//! checks as a file.

mod flags;
mod limit_flag;
mod nodes;
mod request_set;
mod routes;

pub use self::flags::Flags;
pub use self::flags::inline;

#[cfg(test)]
mod tests;
