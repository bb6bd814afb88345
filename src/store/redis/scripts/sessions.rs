//! Calls of the script that stores the sessions of all gateways.

use super::invocation::Invocation;
use super::text;
use crate::rules::decision::{SessionChange, SignIn};
use crate::store::redis::settings::Time;
use crate::store::sessions::codec;
use crate::store::sessions::codec::KnownSession;
use crate::words::clock::Timestamp;

/// The common part of all calls of the script.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct SessionCall<'c> {
    pub prefix: &'c str,
    /// The channel on which the script publishes changes.
    pub channel: &'c str,
    pub time: &'c Time,
    /// How many sessions there may be.
    pub most: usize,
}

/// How far sessions have been loaded: the stamps of the last forgotten session and of the last session.
#[derive(Clone, Debug)]
pub(in crate::store::redis) struct LoadPosition {
    pub forgotten: String,
    pub changed: String,
}

/// The name of the hash. The part in braces puts all keys of sessions into one slot.
pub(in crate::store::redis) fn name(prefix: &str) -> String {
    format!("{prefix}:{{sessions}}")
}

/// Reads the version: `begun changes stamp`, and until when to ask often, if a change could not be published.
pub(in crate::store::redis) fn version(prefix: &str) -> redis::Cmd {
    let mut command = redis::cmd("HGET");
    command.arg(name(prefix)).arg("v");
    command
}

impl SessionCall<'_> {
    /// Stores the sessions of a success, unless its request carried a session of another account.
    pub(in crate::store::redis) fn sign_in(&self, sign_in: &SignIn) -> Invocation {
        let SignIn { account, keep, learned, carried } = sign_in;
        let mut invocation = self.call("sign");
        let command = invocation.command.arg(&account.0.to_be_bytes()).arg(&codec::write_keep(*keep));
        command.arg(codec::write_hashes(carried)).arg(codec::write_hashes(learned));
        invocation
    }

    /// Applies changes; `known` is what this gateway knows of the old session of each. A session that is learned is renewed
    /// to itself.
    pub(in crate::store::redis) fn change(&self, changes: &[(SessionChange, Option<KnownSession>)]) -> Invocation {
        let mut invocation = self.call("change");
        for (change, known) in changes {
            let mut bytes = Vec::new();
            match change {
                SessionChange::Forget(session) => {
                    bytes.push(b'f');
                    bytes.extend_from_slice(&session.0.to_be_bytes());
                }
                SessionChange::Renew { old, new } | SessionChange::Learn { session: old @ new, .. } => {
                    bytes.push(b'r');
                    bytes.extend_from_slice(&codec::write_hashes(&[*old, *new]));
                    if let Some(KnownSession { account, keep, .. }) = known {
                        bytes.extend_from_slice(&account.0.to_be_bytes());
                        bytes.extend_from_slice(&codec::write_keep(*keep));
                    }
                }
            }
            invocation.command.arg(bytes);
        }
        invocation
    }

    /// Sends sessions that Redis may not have.
    pub(in crate::store::redis) fn send(&self, sessions: &[KnownSession], now: Timestamp) -> Invocation {
        let mut invocation = self.call("send");
        invocation.command.arg(codec::write_learned(sessions, now));
        invocation
    }

    /// Tells that these sessions were used.
    pub(in crate::store::redis) fn tell_uses(&self, sessions: &[KnownSession], now: Timestamp) -> Invocation {
        let mut invocation = self.call("use");
        invocation.command.arg(codec::write_uses(sessions, now));
        invocation
    }

    /// Reads the page after this position.
    pub(in crate::store::redis) fn page(&self, after: &LoadPosition) -> Invocation {
        let mut invocation = self.call("load");
        invocation.command.arg(&after.forgotten).arg(&after.changed);
        invocation
    }

    fn call(&self, verb: &str) -> Invocation {
        let script = text::sessions();
        let name = name(self.prefix);
        let mut command = script.call(3);
        command.arg(&name).arg(format!("{name}:stamps")).arg(format!("{name}:forgotten"));
        command.arg(verb).arg(self.most).arg(self.channel).arg(format!("{:016x}", fastrand::u64(..)));
        match self.time {
            Time::OfServer => command.arg(""),
            Time::Given(clock) => command.arg(clock.now().as_micros()),
        };
        Invocation { script, command }
    }
}
