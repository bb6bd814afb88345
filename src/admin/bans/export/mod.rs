//! Exports banned networks in the formats of firewalls and servers.

mod firewall;
mod format;
mod handler;
mod networks;
mod ranges;
mod text;

pub(in crate::admin) use self::handler::export;
