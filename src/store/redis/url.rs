//! Where a Redis server is: `redis://user:password@host:6379/0`, `rediss://` for TLS.

use std::fmt;
use std::str::FromStr;

/// The address of a server, its user and password. What is printed of it shows no password.
#[derive(Clone, Eq, PartialEq)]
pub struct Url {
    text: String,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is no address of a Redis server, write one such as redis://127.0.0.1:6379/0")]
pub struct InvalidUrl;

impl Url {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Url {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        redis::parse_redis_url(text).map(|_| Self { text: text.to_owned() }).ok_or(InvalidUrl)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Url(***)")
    }
}

/// Host and port alone.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = redis::parse_redis_url(&self.text).expect("it was parsed before");
        write!(f, "{}:{}", url.host_str().unwrap_or("127.0.0.1"), url.port().unwrap_or(6379))
    }
}
