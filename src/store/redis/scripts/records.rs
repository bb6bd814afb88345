//! Calls of the scripts that keep small records of gateways.

use std::time::Duration;

use super::invocation::Invocation;
use super::text;
use crate::store::redis::settings::Time;

/// The name of the set of all records of a kind. The part in braces puts the records into the slot of the set.
pub(in crate::store::redis) fn name(prefix: &str, kind: &str) -> String {
    format!("{prefix}:{{records}}:{kind}")
}

/// The call that writes the record of this name, which is kept for so long.
pub(in crate::store::redis) fn write(set: &str, name: &str, record: &[u8], kept: Duration, time: &Time) -> Invocation {
    let script = text::writing_record();
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(2).arg(set).arg(format!("{set}:{name}"));
    command.arg(record).arg(name).arg(kept.as_millis().to_string());
    with_time(&mut command, time);
    Invocation { script, command }
}

/// The call that reads all records of a kind.
pub(in crate::store::redis) fn read(set: &str, time: &Time) -> Invocation {
    let script = text::reading_records();
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(1).arg(set).arg(MOST_READ).arg("");
    with_time(&mut command, time);
    Invocation { script, command }
}

/// The command that keeps a record under its name, without the set.
pub(in crate::store::redis) fn put(set: &str, name: &str, record: &[u8], kept: Duration) -> redis::Cmd {
    let mut command = redis::cmd("SET");
    command.arg(format!("{set}:{name}")).arg(record).arg("PX").arg(kept.as_millis().to_string());
    command
}

/// The command that reads it.
pub(in crate::store::redis) fn get(set: &str, name: &str) -> redis::Cmd {
    let mut command = redis::cmd("GET");
    command.arg(format!("{set}:{name}"));
    command
}

/// The command that removes it.
pub(in crate::store::redis) fn remove(set: &str, name: &str) -> redis::Cmd {
    let mut command = redis::cmd("DEL");
    command.arg(format!("{set}:{name}"));
    command
}

fn with_time(command: &mut redis::Cmd, time: &Time) {
    match time {
        Time::OfServer => command.arg(""),
        Time::Given(clock) => command.arg(clock.now().as_micros()),
    };
}

/// More than any fleet has.
const MOST_READ: usize = 2000;
