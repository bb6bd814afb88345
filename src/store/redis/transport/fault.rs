//! Why a server cannot be reached or refuses a command, with a text for logs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

use redis::RedisError;

use super::pipeline::NoAnswer;

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
        let detail =
            "it closed a new connection at once: it was just ended, or has as many clients as its `maxclients`";
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

// The circuit breaker of a server: the first failure opens it, and a probe that succeeds closes it.

/// The text behind `ERR` in the answer to a connection that is one too many.
const TOO_MANY_CLIENTS: &str = "max number of clients reached";

/// The circuit breaker of a server, in one word that all cores read.
///
/// Each opening begins a new generation. A call of an earlier generation that fails late opens nothing.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct Breaker(AtomicU64);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store::redis) struct BreakerState {
    pub(in crate::store::redis) generation: u64,
    /// Why the breaker is open; `None`: it is closed.
    pub(in crate::store::redis) cause: Option<DownCause>,
}

/// Why a server counts as down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(in crate::store::redis) enum DownCause {
    Timeout = 1,
    Connection,
    Loading,
    ReadOnly,
    OutOfMemory,
    NoAuth,
    NoPermission,
    Misconfigured,
    MasterDown,
    ClusterDown,
    Busy,
    NoReplicas,
    Moved,
    MaxClients,
    Other,
}

impl Breaker {
    pub(in crate::store::redis) fn state(&self) -> BreakerState {
        let word = self.0.load(Ordering::Acquire);
        let cause = match word & 0xff {
            0 => None,
            number => DownCause::ALL.into_iter().find(|cause| *cause as u64 == number),
        };
        BreakerState { generation: word >> 8, cause }
    }

    /// Opens the breaker because a call of `generation` failed; `true`: it was closed before.
    pub(in crate::store::redis) fn open(&self, generation: u64, cause: DownCause) -> bool {
        let (closed, open) = (generation << 8, (generation + 1) << 8 | cause as u64);
        self.0.compare_exchange(closed, open, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Changes the cause of an open breaker.
    pub(in crate::store::redis) fn explain(&self, cause: DownCause) {
        let update = |word| (word & 0xff != 0).then_some((word & !0xff) | cause as u64);
        let _closed = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
    }

    pub(in crate::store::redis) fn close(&self) {
        self.0.fetch_and(!0xff, Ordering::AcqRel);
    }
}

impl DownCause {
    const ALL: [Self; 15] = [
        Self::Timeout,
        Self::Connection,
        Self::Loading,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::NoAuth,
        Self::NoPermission,
        Self::Misconfigured,
        Self::MasterDown,
        Self::ClusterDown,
        Self::Busy,
        Self::NoReplicas,
        Self::Moved,
        Self::MaxClients,
        Self::Other,
    ];

    /// The label in metrics and logs.
    pub(in crate::store::redis) fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Loading => "loading",
            Self::ReadOnly => "readonly",
            Self::OutOfMemory => "oom",
            Self::NoAuth => "noauth",
            Self::NoPermission => "noperm",
            Self::Misconfigured => "misconf",
            Self::MasterDown => "masterdown",
            Self::ClusterDown => "clusterdown",
            Self::Busy => "busy",
            Self::NoReplicas => "noreplicas",
            Self::Moved => "moved",
            Self::MaxClients => "maxclients",
            Self::Other => "other",
        }
    }

    /// Whether another connection may find another state: the name may lead to another server by now, which decides, and a
    /// login belongs to its connection.
    pub(in crate::store::redis) fn needs_new_connection(self) -> bool {
        match self {
            Self::Timeout
            | Self::Connection
            | Self::MaxClients
            | Self::NoAuth
            | Self::Loading
            | Self::ReadOnly
            | Self::MasterDown
            | Self::NoReplicas => true,
            Self::OutOfMemory
            | Self::NoPermission
            | Self::Misconfigured
            | Self::ClusterDown
            | Self::Busy
            | Self::Moved
            | Self::Other => false,
        }
    }

    /// Whether the server lets nobody in, or has cut somebody off. That one old connection still works says nothing then.
    pub(in crate::store::redis) fn is_of_connecting(self) -> bool {
        matches!(self, Self::Connection | Self::MaxClients)
    }

    /// Whether the server says so itself.
    pub(in crate::store::redis) fn is_answered(self) -> bool {
        !matches!(self, Self::Timeout | Self::Connection)
    }

    /// The cause that an error answer means.
    pub(in crate::store::redis) fn of_answer(error: &redis::ServerError) -> Self {
        match Self::of_code(error.code()) {
            Self::Other if error.details().is_some_and(|details| details.starts_with(TOO_MANY_CLIENTS)) => {
                Self::MaxClients
            }
            // Before Redis 7 the error of a script hides the code of the failed command in its details.
            Self::Other => error
                .details()
                .into_iter()
                .flat_map(|details| details.split([' ', ':']))
                .filter_map(|word| word.strip_prefix('-'))
                .map(Self::of_code)
                .find(|cause| *cause != Self::Other)
                .unwrap_or(Self::Other),
            known => known,
        }
    }

    /// The cause that a failed call means.
    pub(in crate::store::redis) fn of_error(error: &RedisError) -> Self {
        match error.kind() {
            redis::ErrorKind::AuthenticationFailed => Self::NoAuth,
            _ if error.is_timeout() => Self::Timeout,
            _ => error.code().map_or(Self::Connection, Self::of_code),
        }
    }

    fn of_code(code: &str) -> Self {
        match code {
            "LOADING" => Self::Loading,
            "READONLY" => Self::ReadOnly,
            "OOM" => Self::OutOfMemory,
            "NOAUTH" | "WRONGPASS" => Self::NoAuth,
            "NOPERM" => Self::NoPermission,
            "MISCONF" => Self::Misconfigured,
            "MASTERDOWN" => Self::MasterDown,
            "CLUSTERDOWN" => Self::ClusterDown,
            "BUSY" | "UNKILLABLE" => Self::Busy,
            "NOREPLICAS" => Self::NoReplicas,
            "MOVED" | "ASK" => Self::Moved,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_opens_and_late_ones_do_not() {
        let breaker = Breaker::default();
        let before = breaker.state();
        assert_eq!(before, BreakerState { generation: 0, cause: None });
        assert!(breaker.open(before.generation, DownCause::Timeout));
        assert!(!breaker.open(before.generation, DownCause::Connection));
        assert_eq!(breaker.state(), BreakerState { generation: 1, cause: Some(DownCause::Timeout) });
        breaker.close();
        assert!(!breaker.open(before.generation, DownCause::Timeout), "it was asked for before the breaker opened");
        assert_eq!(breaker.state(), BreakerState { generation: 1, cause: None });
        assert!(breaker.open(1, DownCause::Loading));
    }

    #[test]
    fn the_cause_may_change_while_it_is_open_and_not_otherwise() {
        let breaker = Breaker::default();
        breaker.explain(DownCause::Loading);
        assert_eq!(breaker.state().cause, None);
        breaker.open(0, DownCause::Connection);
        breaker.explain(DownCause::Loading);
        assert_eq!(breaker.state(), BreakerState { generation: 1, cause: Some(DownCause::Loading) });
    }

    #[test]
    fn every_cause_is_remembered() {
        for cause in DownCause::ALL {
            let breaker = Breaker::default();
            assert!(breaker.open(0, cause));
            assert_eq!(breaker.state().cause, Some(cause), "{}", cause.word());
        }
    }

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
