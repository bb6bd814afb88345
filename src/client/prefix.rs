//! How wide a net one client is: addresses cut to a prefix.

use std::net::IpAddr;

use super::ClientIp;

/// How many leading bits of an address make one client. `v4` is at most 32, `v6` at most 128.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Prefix {
    pub v4: u8,
    pub v6: u8,
}

impl Default for Prefix {
    fn default() -> Self {
        Self { v4: 32, v6: 64 }
    }
}

impl Prefix {
    /// The network address that `client` is counted under.
    pub fn cut(self, _client: ClientIp) -> IpAddr {
        todo!()
    }
}
