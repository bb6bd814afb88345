//! Bans: listing, setting and lifting them, and exporting them for firewalls.

mod ban_response;
mod create;
mod export;
mod key_ban_response;
mod key_values;
mod lift;
mod limit_key;
mod parse;
mod read;
mod remove;
mod remove_matching;
mod routes;

pub(super) use self::key_ban_response::KeyBanResponse;
pub(super) use self::key_ban_response::ban_of;
pub(super) use self::routes::routes;
