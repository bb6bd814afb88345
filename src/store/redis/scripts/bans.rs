//! What is asked of the script that keeps the bans of all gateways.

use super::invocation::Invocation;
use super::text;
use crate::limit::Ladder;
use crate::store::bans::BanId;
use crate::store::redis::settings::Time;

/// One call of the script.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct BanCall<'c> {
    pub prefix: &'c str,
    /// Where changes are told.
    pub channel: &'c str,
    pub time: &'c Time,
}

/// What a gateway decided by itself, as the script is told of it: spans in microseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct OutageBan {
    pub left: u128,
    pub length: u128,
    pub step: u32,
    pub by_operator: bool,
    pub age: u128,
}

/// The name of the hash: what is in braces puts all that belongs to it into one slot.
pub(in crate::store::redis) fn name(prefix: &str) -> String {
    format!("{prefix}:{{bans}}")
}

/// Asks which changes there were: `begun changes`, and until when to ask often, if so.
pub(in crate::store::redis) fn version(prefix: &str) -> redis::Cmd {
    let mut command = redis::cmd("HGET");
    command.arg(name(prefix)).arg("v");
    command
}

impl BanCall<'_> {
    /// The next step of a ladder, unless a ban lasts.
    pub(in crate::store::redis) fn trip(&self, id: BanId, blob: &str, ladder: &Ladder) -> Invocation {
        let mut invocation = self.of("trip", &id.to_string());
        invocation.command.arg(blob);
        for length in ladder.lengths() {
            invocation.command.arg(length.as_micros().to_string());
        }
        invocation
    }

    /// A ban by hand for so many microseconds.
    pub(in crate::store::redis) fn ban(&self, id: BanId, blob: &str, span: u128) -> Invocation {
        let mut invocation = self.of("ban", &id.to_string());
        invocation.command.arg(blob).arg(span.to_string());
        invocation
    }

    /// A ban that this gateway decided on while Redis was away.
    pub(in crate::store::redis) fn tell(&self, id: BanId, blob: &str, decided: OutageBan) -> Invocation {
        let OutageBan { left, length, step, by_operator, age } = decided;
        let mut invocation = self.of("tell", &id.to_string());
        let command = invocation.command.arg(blob).arg(left.to_string()).arg(length.to_string());
        command.arg(step).arg(if by_operator { "h" } else { "l" }).arg(age.to_string());
        invocation
    }

    pub(in crate::store::redis) fn lift(&self, id: BanId) -> Invocation {
        self.of("lift", &id.to_string())
    }

    /// Some of the bans, and where to go on; from `0` to `0`.
    pub(in crate::store::redis) fn page(&self, cursor: &str) -> Invocation {
        self.of("load", cursor)
    }

    fn of(&self, what: &str, id: &str) -> Invocation {
        let script = text::banning();
        let name = name(self.prefix);
        let mut command = redis::cmd("EVALSHA");
        command.arg(&script.sha).arg(3).arg(&name).arg(format!("{name}:ends")).arg(format!("{name}:kept"));
        command.arg(what).arg(id).arg(self.channel).arg(format!("{:016x}", fastrand::u64(..)));
        match self.time {
            Time::OfServer => command.arg(""),
            Time::Given(clock) => command.arg(clock.now().as_micros()),
        };
        Invocation { script, command }
    }
}
