//! The URL of a Redis server: `redis://user:password@host:6379/0`, `rediss://` for TLS, `unix:///run/redis.sock`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use redis::ConnectionAddr;
use redis::IntoConnectionInfo;

/// The address of a server, its user and password. Printing it shows no password.
#[derive(Clone, Eq, PartialEq)]
pub struct Url {
    pub(in crate::store::redis) address: Address,
    pub(in crate::store::redis) login: Login,
    pub(in crate::store::redis) database: i64,
    /// The name of the master at the sentinels: `redis://host:26379/mymaster/0`.
    pub(in crate::store::redis) master: Option<String>,
}

/// The address of a server.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::store::redis) enum Address {
    Tcp { host: String, port: u16, tls: bool },
    Unix(PathBuf),
}

/// The login of the gateway at a server.
#[derive(Clone, Default, Eq, PartialEq)]
pub(in crate::store::redis) struct Login {
    pub(in crate::store::redis) user: Option<String>,
    pub(in crate::store::redis) password: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is not the address of a Redis server, write one such as `redis://127.0.0.1:6379/0`")]
pub struct InvalidUrl;

/// The port of a sentinel if the URL has none.
pub(in crate::store::redis) const SENTINEL_PORT: u16 = 26379;

const SERVER_PORT: u16 = 6379;

impl Url {
    /// The address of the sentinel of this URL, with the default port of sentinels.
    pub(in crate::store::redis) fn sentinel(&self) -> Address {
        match &self.address {
            Address::Tcp { host, port: SERVER_PORT, tls } => {
                Address::Tcp { host: host.clone(), port: SENTINEL_PORT, tls: *tls }
            }
            other => other.clone(),
        }
    }

    pub fn has_password(&self) -> bool {
        self.login.password.is_some()
    }

    /// The first part in which another URL differs, apart from the server. URLs of one store differ only in their
    /// servers.
    pub fn differs(&self, other: &Self) -> Option<&'static str> {
        let compared = [
            ("user", self.login.user != other.login.user),
            ("password", self.login.password != other.login.password),
            ("name of the master", self.master != other.master),
            ("database", self.database != other.database),
        ];
        compared.into_iter().find_map(|(what, differs)| differs.then_some(what))
    }
}

impl Address {
    /// Another server with the same protocol.
    pub(in crate::store::redis) fn at(&self, host: &str, port: u16) -> Self {
        Self::Tcp { host: host.to_owned(), port, tls: matches!(self, Self::Tcp { tls: true, .. }) }
    }

    /// The host of this server, for servers that are named only by their port.
    pub(in crate::store::redis) fn host(&self) -> &str {
        match self {
            Self::Tcp { host, .. } => host,
            Self::Unix(_) => "127.0.0.1",
        }
    }
}

impl FromStr for Url {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let mut url = redis::parse_redis_url(text).ok_or(InvalidUrl)?;
        // The only known fragment turns certificate checks off.
        if url.fragment().is_some() {
            return Err(InvalidUrl);
        }
        let tls = matches!(url.scheme(), "rediss" | "valkeys");
        let mut master = None;
        if !url.scheme().contains("unix") {
            let path = url.path().trim_matches('/').to_owned();
            let (first, rest) = path.split_once('/').unwrap_or((&path, ""));
            let named = !first.is_empty() && first.parse::<u32>().is_err();
            master = named.then(|| first.to_owned());
            let database = if named { rest } else { &path };
            if !database.is_empty() && database.parse::<u32>().is_err() {
                return Err(InvalidUrl);
            }
            let database = database.to_owned();
            url.set_path(&database);
            // The gateway does TLS itself, so the crate gets a URL without it.
            url.set_scheme("redis").map_err(|()| InvalidUrl)?;
        }
        let info = url.into_connection_info().map_err(|_| InvalidUrl)?;
        let settings = info.redis_settings();
        let login =
            Login { user: settings.username().map(str::to_owned), password: settings.password().map(str::to_owned) };
        let address = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Address::Tcp { host: host.clone(), port: *port, tls },
            ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
            _ => return Err(InvalidUrl),
        };
        Ok(Self { address, login, database: settings.db(), master })
    }
}

impl fmt::Display for Url {
    /// Host and port alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(***)")
    }
}

impl fmt::Display for Address {
    /// `127.0.0.1:6379`, or the path of a socket.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn url(text: &str) -> Url {
        text.parse().expect(text)
    }

    #[test]
    fn user_and_password_are_read_and_never_printed() {
        let url = url("redis://al%40ice:s%2Fecret@redis.example:7000/3");
        assert_eq!(url.login.user.as_deref(), Some("al@ice"));
        assert_eq!(url.login.password.as_deref(), Some("s/ecret"));
        assert_eq!(url.database, 3);
        assert_eq!(url.to_string(), "redis.example:7000");
        assert_eq!(format!("{url:?} {:?}", url.login), "Url(redis.example:7000) Login(***)");
    }

    #[test]
    fn a_port_and_a_database_have_defaults() {
        assert_eq!((url("redis://redis").to_string(), url("redis://redis").database), ("redis:6379".to_owned(), 0));
        assert_eq!(url("rediss://[::1]/").to_string(), "[::1]:6379");
        assert_eq!(url("unix:///run/redis.sock?db=2").to_string(), "/run/redis.sock");
        assert_eq!(url("redis://s1").sentinel().to_string(), "s1:26379");
        assert_eq!(url("redis://s1:5000").sentinel().to_string(), "s1:5000");
    }

    #[test]
    fn the_path_may_name_the_master() {
        let named = url("redis://s1:26379/sessions/2");
        assert_eq!((named.master.as_deref(), named.database), (Some("sessions"), 2));
        let named = url("rediss://s1:26379/sessions");
        assert_eq!((named.master.as_deref(), named.database), (Some("sessions"), 0));
        assert_eq!(url("redis://s1:26379/4").master, None);
    }

    #[test]
    fn urls_of_one_store_differ_in_their_servers_alone() {
        let first = url("redis://gate:a@s1:26379/sessions/2");
        assert_eq!(first.differs(&url("redis://gate:a@s2:5000/sessions/2")), None);
        assert_eq!(first.differs(&url("redis://gates:a@s2/sessions/2")), Some("user"));
        assert_eq!(first.differs(&url("redis://gate@s2/sessions/2")), Some("password"));
        assert_eq!(first.differs(&url("redis://gate:a@s2/2")), Some("name of the master"));
        assert_eq!(first.differs(&url("redis://gate:a@s2/sessions")), Some("database"));
    }

    #[test]
    fn a_url_that_is_not_of_redis_is_refused() {
        for text in
            ["", "127.0.0.1:6379", "http://a", "redis://", "redis://a/b/c", "redis://a/0/1", "rediss://a/#insecure"]
        {
            assert_eq!(text.parse::<Url>(), Err(InvalidUrl), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_url_or_none_and_no_password_is_printed(
            text in "(redis|rediss|unix)?(://|:)?[ -~]{0,16}",
            password in "[a-z]{12}",
        ) {
            drop(text.parse::<Url>());
            if let Ok(url) = format!("redis://me:{password}@127.0.0.1/0").parse::<Url>() {
                let printed = format!("{url:?} {url}");
                prop_assert!(!printed.contains(&password));
            }
        }
    }
}
