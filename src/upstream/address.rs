//! Where a server is: an address, a name that has addresses, or a Unix socket.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::path::PathBuf;

use http::uri::Authority;

use super::settings::Location;
use super::settings::ServerUrl;
use super::settings::UNIX_SOCKET;

#[derive(Debug)]
pub(super) enum ServerAddress {
    Address(SocketAddr),
    /// While the addresses of a name are unknown, it is looked up for each connection.
    Name {
        host: String,
        port: u16,
    },
    UnixSocket(PathBuf),
}

impl ServerAddress {
    pub(super) fn of(url: &ServerUrl) -> Self {
        let authority = match &url.location {
            Location::Authority(authority) => authority,
            Location::UnixSocket(name) => {
                return Self::UnixSocket(name.strip_prefix(UNIX_SOCKET).unwrap_or(name).into());
            }
        };
        let default = if url.verified_as.is_some() { HTTPS_PORT } else { HTTP_PORT };
        let port = authority.port_u16().unwrap_or(default);
        let host = bare_host(authority);
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
        let address = match ServerAddress::of(&authority.parse::<Authority>().unwrap().into()) {
            ServerAddress::Address(address) => format!("address {address}"),
            ServerAddress::Name { host, port } => format!("name {host} {port}"),
            ServerAddress::UnixSocket(path) => format!("socket {}", path.display()),
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
