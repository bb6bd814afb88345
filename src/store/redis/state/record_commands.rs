//! The commands that keep the records of gateways. They are in one slot, by the part in braces.

use std::time::Duration;

use crate::clock::Timestamp;

/// The name of the sorted set of all gateways, each with the moment in ms at which it registered.
pub(super) fn set(prefix: &str) -> String {
    format!("{prefix}:{{records}}:gateways")
}

/// The name of the hash of a gateway.
fn hash(prefix: &str, gateway: &str) -> String {
    format!("{prefix}:{{records}}:{gateway}")
}

/// Writes fields of a gateway. The answer is how many of them are new.
pub(super) fn write<'f>(
    prefix: &str,
    gateway: &str,
    fields: impl IntoIterator<Item = &'f (&'f str, Vec<u8>)>,
) -> redis::Cmd {
    let mut command = redis::cmd("HSET");
    command.arg(hash(prefix, gateway));
    for (name, content) in fields {
        command.arg(*name).arg(content);
    }
    command
}

/// Names a gateway in the set, which forgets those that have not registered for long. All of it expires.
pub(super) fn register(prefix: &str, gateway: &str, now: Timestamp, kept: Duration) -> [redis::Cmd; 4] {
    let [mut add, mut expire, mut expire_set, mut forget] =
        ["ZADD", "PEXPIRE", "PEXPIRE", "ZREMRANGEBYSCORE"].map(redis::cmd);
    let kept_ms = kept.as_millis().to_string();
    add.arg(set(prefix)).arg(millis(now)).arg(gateway);
    expire.arg(hash(prefix, gateway)).arg(&kept_ms);
    expire_set.arg(set(prefix)).arg(&kept_ms);
    forget.arg(set(prefix)).arg("-inf").arg(format!("({}", oldest(now, kept)));
    [add, expire, expire_set, forget]
}

/// Removes fields of a gateway.
pub(super) fn remove(prefix: &str, gateway: &str, fields: &[String]) -> redis::Cmd {
    let mut command = redis::cmd("HDEL");
    command.arg(hash(prefix, gateway)).arg(fields);
    command
}

/// Reads the names of the gateways that have registered lately.
pub(super) fn gateways(prefix: &str, now: Timestamp, kept: Duration) -> redis::Cmd {
    let mut command = redis::cmd("ZRANGEBYSCORE");
    command.arg(set(prefix)).arg(oldest(now, kept)).arg("+inf").arg("LIMIT").arg(0).arg(MOST_READ);
    command
}

/// Reads fields of a gateway.
pub(super) fn read(prefix: &str, gateway: &str, fields: &[String]) -> redis::Cmd {
    let mut command = redis::cmd("HMGET");
    command.arg(hash(prefix, gateway)).arg(fields);
    command
}

fn oldest(now: Timestamp, kept: Duration) -> u128 {
    u128::from(millis(now)).saturating_sub(kept.as_millis())
}

fn millis(moment: Timestamp) -> u64 {
    moment.as_micros() / 1000
}

/// More than any fleet has.
const MOST_READ: usize = 2000;
