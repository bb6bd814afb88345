//! Why a server is not reached, or did not do what it was told, in words for a log.

use std::fmt;
use std::io;

use redis::RedisError;

use super::breaker::Cause;

/// Why a server is not reached, or did not do what it was told.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) cause: Cause,
    /// For logs: says nothing of keys or passwords.
    pub(super) detail: String,
}

impl Fault {
    pub(super) fn of_answer(error: &redis::ServerError) -> Self {
        let detail = match error.code() {
            "MOVED" => "it is one of a cluster: `mode: cluster` is needed".to_owned(),
            code => format!("it answers {code}"),
        };
        Self { cause: Cause::of_answer(error), detail }
    }

    pub(super) fn timeout() -> Self {
        Self { cause: Cause::Timeout, detail: "it does not answer".to_owned() }
    }

    /// An answer that makes no sense.
    pub(super) fn nonsense() -> Self {
        Self { cause: Cause::Other, detail: "its answer is not understood".to_owned() }
    }
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        let detail = match (Cause::of_error(&error), error.code()) {
            (Cause::NoAuth, _) => "it does not accept the password".to_owned(),
            (_, Some(code)) => format!("it answers {code}"),
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
