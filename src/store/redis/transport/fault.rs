//! Why a server cannot be reached or refuses a command, with a text for logs.

use std::fmt;
use std::io;

use redis::RedisError;

use super::breaker::DownCause;
use super::pipeline::NoAnswer;

/// Why a server cannot be reached or has refused a command.
#[derive(Debug)]
pub(in crate::store::redis) struct ServerFault {
    pub(in crate::store::redis) cause: DownCause,
    /// For logs: without keys and passwords.
    pub(in crate::store::redis) detail: String,
}

/// Why a command that was to be sent has no answer.
#[derive(Debug)]
pub(in crate::store::redis) enum SendError {
    Pipeline(NoAnswer),
    Library(RedisError),
}

impl SendError {
    pub(in crate::store::redis) fn cause(&self) -> DownCause {
        match self {
            Self::Pipeline(NoAnswer::Silent) => DownCause::Timeout,
            Self::Pipeline(NoAnswer::Closed | NoAnswer::NotSent) => DownCause::Connection,
            Self::Library(error) => DownCause::of_error(error),
        }
    }

    /// Whether the server surely did not get the command.
    pub(in crate::store::redis) fn is_unsent(&self) -> bool {
        matches!(self, Self::Pipeline(NoAnswer::NotSent))
    }
}

impl From<NoAnswer> for SendError {
    fn from(error: NoAnswer) -> Self {
        Self::Pipeline(error)
    }
}

impl From<RedisError> for SendError {
    fn from(error: RedisError) -> Self {
        Self::Library(error)
    }
}

impl From<SendError> for ServerFault {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Pipeline(NoAnswer::Silent) => Self::timeout(),
            SendError::Pipeline(NoAnswer::Closed | NoAnswer::NotSent) => {
                Self { cause: DownCause::Connection, detail: "it closed the connection".to_owned() }
            }
            SendError::Library(error) => error.into(),
        }
    }
}

impl ServerFault {
    pub(in crate::store::redis) fn of_answer(error: &redis::ServerError) -> Self {
        Self { cause: DownCause::of_answer(error), detail: meaning(error.code(), error.details().unwrap_or_default()) }
    }

    pub(in crate::store::redis) fn timeout() -> Self {
        Self { cause: DownCause::Timeout, detail: "it does not answer".to_owned() }
    }

    /// A connection that is closed before it is logged in.
    pub(in crate::store::redis) fn closed_at_once() -> Self {
        let detail = "it closes new connections at once: it may have as many clients as its `maxclients`";
        Self { cause: DownCause::Connection, detail: detail.to_owned() }
    }

    /// An answer that the gateway does not understand.
    pub(in crate::store::redis) fn nonsense() -> Self {
        Self { cause: DownCause::Other, detail: "the gateway does not understand its answer".to_owned() }
    }
}

/// The meaning of an error answer. Its text is not repeated, because it may contain what the gateway sent.
fn meaning(code: &str, details: &str) -> String {
    if let ("ERR", Some(command)) = (code, word_in(details, "unknown command ")) {
        return format!(
            "it does not know {command}: it must not be renamed (`rename-command`), and a proxy must pass it on"
        );
    }
    if let ("NOPERM", Some(command)) = (code, word_in(details, "to run the ")) {
        let rule = command.to_ascii_lowercase();
        return format!("its user may not run {command}: add `+{rule}` to its rules (`ACL SETUSER`)");
    }
    match code {
        "MOVED" => "it is part of a cluster, set `mode: cluster`".to_owned(),
        "NOAUTH" => "it requires a password".to_owned(),
        "ERR" if details.starts_with("max number of clients") => {
            "it has as many clients as its `maxclients`".to_owned()
        }
        "ERR" if details.starts_with("DB index is out of range") => "it has no database with that number".to_owned(),
        "ERR" if details.contains("cluster support disabled") => "it is not part of a cluster".to_owned(),
        "ERR" if NOT_A_SENTINEL.iter().any(|words| details.starts_with(words)) => "it is not a sentinel".to_owned(),
        "NOPERM" if details.contains("keys") => {
            "its user may not use the keys of the gateway: add `~PREFIX:*` to its rules, with the `key_prefix`"
                .to_owned()
        }
        code => format!("it answers {code}"),
    }
}

/// The name of a command that stands in quotes behind these words. Anything else may be what the gateway sent.
fn word_in<'d>(details: &'d str, before: &str) -> Option<&'d str> {
    let quoted = details.split_once(before)?.1.strip_prefix(['\'', '`'])?;
    let word = quoted.split(['\'', '`']).next()?;
    COMMANDS.iter().any(|command| command.eq_ignore_ascii_case(word)).then_some(word)
}

/// The commands that the gateway sends and that its scripts call.
const COMMANDS: [&str; 34] = [
    "asking",
    "auth",
    "client",
    "cluster|slots",
    "dbsize",
    "del",
    "evalsha",
    "get",
    "getrange",
    "hdel",
    "hello",
    "hget",
    "hmget",
    "hscan",
    "hset",
    "info",
    "pexpire",
    "ping",
    "pttl",
    "publish",
    "role",
    "script",
    "script|load",
    "select",
    "set",
    "setrange",
    "subscribe",
    "time",
    "wait",
    "xadd",
    "zadd",
    "zcard",
    "zrangebyscore",
    "zrem",
];

/// What a server that is not a sentinel answers to `SENTINEL`: Redis 7, and Redis 6.
const NOT_A_SENTINEL: [&str; 2] = ["unknown command 'SENTINEL'", "unknown command `SENTINEL`"];

impl From<RedisError> for ServerFault {
    fn from(error: RedisError) -> Self {
        let detail = match (DownCause::of_error(&error), error.code()) {
            (DownCause::NoAuth, _) => "it does not accept the password".to_owned(),
            (_, Some(code)) => meaning(code, error.detail().unwrap_or_default()),
            (_, None) => error.to_string(),
        };
        Self { cause: DownCause::of_error(&error), detail }
    }
}

impl From<io::Error> for ServerFault {
    fn from(error: io::Error) -> Self {
        Self { cause: DownCause::Connection, detail: error.to_string() }
    }
}

impl fmt::Display for ServerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_reported_by_its_meaning_and_not_repeated() {
        assert_eq!(meaning("NOAUTH", "Authentication required."), "it requires a password");
        assert_eq!(meaning("ERR", "DB index is out of range"), "it has no database with that number");
        assert_eq!(meaning("ERR", "This instance has cluster support disabled"), "it is not part of a cluster");
        let six = "unknown command `SENTINEL`, with args beginning with: `MASTERS`, ";
        let seven = "unknown command 'SENTINEL', with args beginning with: 'MASTERS' ";
        assert_eq!([meaning("ERR", six), meaning("ERR", seven)], ["it is not a sentinel"; 2]);
        let renamed = meaning("ERR", "unknown command 'EVALSHA', with args beginning with: 's3cret' ");
        assert!(renamed.starts_with("it does not know EVALSHA: ") && !renamed.contains("s3cret"), "{renamed}");
        assert_eq!(meaning("ERR", "unknown command 's3cret', with args"), "it answers ERR");
        let forbidden = meaning("NOPERM", "User gate has no permissions to run the 'script|load' command");
        assert!(forbidden.contains("`+script|load`") && !forbidden.contains("gate"), "{forbidden}");
        assert_eq!(meaning("ERR", "wrong number of arguments for 's3cret'"), "it answers ERR");
    }
}
