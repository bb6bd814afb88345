//! Calls of the script that stores the bans of all gateways.

use super::invocation::Invocation;
use super::text;
use crate::limit::Ladder;
use crate::store::bans::BanId;
use crate::store::redis::settings::Time;

/// The common part of all calls of the script.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct BanCall<'c> {
    pub prefix: &'c str,
    /// The channel on which the script publishes changes.
    pub channel: &'c str,
    pub time: &'c Time,
}

/// A ban that a gateway set during an outage. Spans are microseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct OutageBan {
    pub left: u128,
    pub length: u128,
    pub step: u32,
    pub by_operator: bool,
    pub age: u128,
}

/// The name of the hash. The part in braces puts all keys of bans into one slot.
pub(in crate::store::redis) fn name(prefix: &str) -> String {
    format!("{prefix}:{{bans}}")
}

/// Reads the version: `begun changes`, and until when to ask often, if a change could not be published.
pub(in crate::store::redis) fn version(prefix: &str) -> redis::Cmd {
    let mut command = redis::cmd("HGET");
    command.arg(name(prefix)).arg("v");
    command
}

impl BanCall<'_> {
    /// Bans for the next step of a ladder, unless a ban lasts.
    pub(in crate::store::redis) fn ban_by_limit(&self, id: BanId, blob: &str, ladder: &Ladder) -> Invocation {
        let mut invocation = self.call("trip", &id.to_string());
        invocation.command.arg(blob);
        for length in ladder.lengths() {
            invocation.command.arg(length.as_micros().to_string());
        }
        invocation
    }

    /// Bans for an operator, for `span` microseconds.
    pub(in crate::store::redis) fn ban_by_operator(&self, id: BanId, blob: &str, span: u128) -> Invocation {
        let mut invocation = self.call("ban", &id.to_string());
        invocation.command.arg(blob).arg(span.to_string());
        invocation
    }

    /// Sends a ban that this gateway set during an outage.
    pub(in crate::store::redis) fn send(&self, id: BanId, blob: &str, ban: OutageBan) -> Invocation {
        let OutageBan { left, length, step, by_operator, age } = ban;
        let mut invocation = self.call("tell", &id.to_string());
        let command = invocation.command.arg(blob).arg(left.to_string()).arg(length.to_string());
        command.arg(step).arg(if by_operator { "h" } else { "l" }).arg(age.to_string());
        invocation
    }

    pub(in crate::store::redis) fn lift(&self, id: BanId) -> Invocation {
        self.call("lift", &id.to_string())
    }

    /// Reads a page of bans and the cursor of the next page. The first cursor is `0`, and so is the one after the last
    /// page.
    pub(in crate::store::redis) fn page(&self, cursor: &str) -> Invocation {
        self.call("load", cursor)
    }

    fn call(&self, verb: &str, id: &str) -> Invocation {
        let script = text::banning();
        let name = name(self.prefix);
        let mut command = redis::cmd("EVALSHA");
        command.arg(&script.sha).arg(3).arg(&name).arg(format!("{name}:ends")).arg(format!("{name}:kept"));
        command.arg(verb).arg(id).arg(self.channel).arg(format!("{:016x}", fastrand::u64(..)));
        match self.time {
            Time::OfServer => command.arg(""),
            Time::Given(clock) => command.arg(clock.now().as_micros()),
        };
        Invocation { script, command }
    }
}
