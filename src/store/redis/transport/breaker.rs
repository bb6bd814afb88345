//! The circuit breaker of a server: the first failure opens it, and a probe that succeeds closes it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use redis::RedisError;

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

/// What follows `ERR` in the answer to a connection that is one too many.
const TOO_MANY_CLIENTS: &str = "max number of clients reached";

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
}
