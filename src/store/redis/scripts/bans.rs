//! Calls of the script that stores the bans of all gateways.

use super::invocation::Invocation;
use super::text;
use crate::rules::limit::Ladder;
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

/// One change of the bans: its words for the script.
#[derive(Clone, Debug)]
pub(in crate::store::redis) struct BanCommand {
    word: &'static str,
    id: BanId,
    arguments: Vec<String>,
}

impl BanCommand {
    /// Bans for the next step of a ladder, unless a ban lasts.
    pub(in crate::store::redis) fn ban_by_limit(id: BanId, blob: String, ladder: &Ladder) -> Self {
        let lengths = ladder.lengths().iter().map(|length| length.as_micros().to_string());
        Self { word: "trip", id, arguments: std::iter::once(blob).chain(lengths).collect() }
    }

    /// Bans for an operator, for `span` microseconds.
    pub(in crate::store::redis) fn ban_by_operator(id: BanId, blob: String, span: u128) -> Self {
        Self { word: "ban", id, arguments: vec![blob, span.to_string()] }
    }

    /// Sends a ban that this gateway set during an outage.
    pub(in crate::store::redis) fn send(id: BanId, blob: String, ban: OutageBan) -> Self {
        let OutageBan { left, length, step, by_operator, age } = ban;
        let hand = if by_operator { "h" } else { "l" };
        let numbers = [left.to_string(), length.to_string(), step.to_string(), hand.to_owned(), age.to_string()];
        Self { word: "tell", id, arguments: std::iter::once(blob).chain(numbers).collect() }
    }

    pub(in crate::store::redis) fn lift(id: BanId) -> Self {
        Self { word: "lift", id, arguments: Vec::new() }
    }
}

impl BanCall<'_> {
    /// Makes changes in this order, and tells every gateway of all of them in one message. The answer has one for each.
    pub(in crate::store::redis) fn change(&self, changes: &[BanCommand]) -> Invocation {
        let mut invocation = self.call("change", "");
        for BanCommand { word, id, arguments } in changes {
            invocation.command.arg(word).arg(id.to_string()).arg(arguments.len()).arg(arguments);
        }
        invocation
    }

    /// Reads a page of bans and the cursor of the next page. The first cursor is `0`, and so is the one after the last
    /// page.
    pub(in crate::store::redis) fn page(&self, cursor: &str) -> Invocation {
        self.call("load", cursor)
    }

    fn call(&self, verb: &str, cursor: &str) -> Invocation {
        let script = text::banning();
        let name = name(self.prefix);
        let mut command = script.call(3);
        command.arg(&name).arg(format!("{name}:ends")).arg(format!("{name}:kept"));
        command.arg(verb).arg(cursor).arg(self.channel).arg(format!("{:016x}", fastrand::u64(..)));
        match self.time {
            Time::OfServer => command.arg(""),
            Time::Given(clock) => command.arg(clock.now().as_micros()),
        };
        Invocation { script, command }
    }
}
