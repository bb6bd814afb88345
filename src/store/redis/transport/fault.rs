//! Why a server is not reached, or does not do what it is told, in words for a log.

use std::fmt;
use std::io;

use redis::RedisError;

use super::breaker::Cause;

/// Why a server is not reached, or did not do what it was told.
#[derive(Debug)]
pub(in crate::store::redis) struct Fault {
    pub(in crate::store::redis) cause: Cause,
    /// For logs: says nothing of keys or passwords.
    pub(in crate::store::redis) detail: String,
}

impl Fault {
    pub(in crate::store::redis) fn of_answer(error: &redis::ServerError) -> Self {
        Self { cause: Cause::of_answer(error), detail: meaning(error.code(), error.details().unwrap_or_default()) }
    }

    pub(in crate::store::redis) fn timeout() -> Self {
        Self { cause: Cause::Timeout, detail: "it does not answer".to_owned() }
    }

    /// An answer that makes no sense.
    pub(in crate::store::redis) fn nonsense() -> Self {
        Self { cause: Cause::Other, detail: "its answer is not understood".to_owned() }
    }
}

/// What an error answer means. What else it says is not repeated: that may be what the gateway sent.
fn meaning(code: &str, details: &str) -> String {
    match code {
        "MOVED" => "it is one of a cluster: `mode: cluster` is needed".to_owned(),
        "NOAUTH" => "it wants a password".to_owned(),
        "ERR" if details.starts_with("DB index is out of range") => "it has no database of that number".to_owned(),
        "ERR" if details.contains("cluster support disabled") => "it is none of a cluster".to_owned(),
        "ERR" if NO_SENTINEL.iter().any(|words| details.starts_with(words)) => "it is no sentinel".to_owned(),
        code => format!("it answers {code}"),
    }
}

/// What a server answers that is asked for its masters: of Redis 7, and of 6.
const NO_SENTINEL: [&str; 2] = ["unknown command 'SENTINEL'", "unknown command `SENTINEL`"];

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        let detail = match (Cause::of_error(&error), error.code()) {
            (Cause::NoAuth, _) => "it does not accept the password".to_owned(),
            (_, Some(code)) => meaning(code, error.detail().unwrap_or_default()),
            (_, None) => error.to_string(),
        };
        Self { cause: Cause::of_error(&error), detail }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self { cause: Cause::Connection, detail: error.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_by_what_it_means_and_not_repeated() {
        assert_eq!(meaning("NOAUTH", "Authentication required."), "it wants a password");
        assert_eq!(meaning("ERR", "DB index is out of range"), "it has no database of that number");
        assert_eq!(meaning("ERR", "This instance has cluster support disabled"), "it is none of a cluster");
        let six = "unknown command `SENTINEL`, with args beginning with: `MASTERS`, ";
        let seven = "unknown command 'SENTINEL', with args beginning with: 'MASTERS' ";
        assert_eq!([meaning("ERR", six), meaning("ERR", seven)], ["it is no sentinel"; 2]);
        assert_eq!(meaning("ERR", "wrong number of arguments for 's3cret'"), "it answers ERR");
    }
}
