//! Where a server is: an address, or a name that has addresses.

use std::net::IpAddr;
use std::net::SocketAddr;

use http::uri::Authority;

use super::settings::ServerUrl;

#[derive(Debug)]
pub(super) enum ServerAddress {
    Address(SocketAddr),
    /// While the addresses of a name are unknown, it is looked up for each connection.
    Name {
        host: String,
        port: u16,
    },
}

impl ServerAddress {
    pub(super) fn of(url: &ServerUrl) -> Self {
        let default = if url.verified_as.is_some() { HTTPS_PORT } else { HTTP_PORT };
        let port = url.authority.port_u16().unwrap_or(default);
        let host = bare_host(&url.authority);
        match host.parse::<IpAddr>() {
            Ok(address) => Self::Address(SocketAddr::new(address, port)),
            Err(_) => Self::Name { host: host.to_owned(), port },
        }
    }
}

/// The host of an authority, an IPv6 address without its brackets.
pub fn bare_host(authority: &Authority) -> &str {
    let host = authority.host();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(authority: &str, expected: &str) {
        let address = ServerAddress::of(&authority.parse::<Authority>().unwrap().into());
        let address = match address {
            ServerAddress::Address(address) => format!("address {address}"),
            ServerAddress::Name { host, port } => format!("name {host} {port}"),
        };
        assert_eq!(address, expected);
    }

    #[test]
    fn addresses_are_not_looked_up() {
        check("10.0.1.5:8000", "address 10.0.1.5:8000");
        check("10.0.1.5", "address 10.0.1.5:80");
        check("[2001:db8::1]:81", "address [2001:db8::1]:81");
        check("app.internal:8000", "name app.internal 8000");
    }
}
