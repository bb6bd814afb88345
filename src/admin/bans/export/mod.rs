//! Exports banned networks in the formats of firewalls and servers.

mod firewall;
mod format;
pub(super) mod handler;
mod networks;
mod ranges;
mod text;
