//! Proposes limits that logged traffic would have lived with.
//!
//! - [`suggesting`]: all of it together.
//! - `paths`, `path_group`: groups the paths of a sample; `route`, `login`: the requests that become a route, and
//!   which of them are logins; `router`: the routes that a request takes, by the rules of the gateway.
//! - `busy`, `figures`: how much the clients of a route did in their busiest minute and hour.
//! - `rates`: the limits for that; `yaml`: the file.

mod busy;
mod figures;
mod login;
mod path_group;
mod paths;
mod rates;
mod route;
mod router;
pub mod suggesting;
mod yaml;

pub use self::suggesting::suggest;
