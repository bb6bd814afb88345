//! The call of the script that keeps the parts of all gateways.

use std::time::Duration;

use redis::Value;

use super::invocation::{Invocation, with_time};
use super::text;
use crate::store::parts::{PartAnswer, PartCall};
use crate::store::redis::settings::Time;

/// The name of the table.
pub(in crate::store::redis) fn name(prefix: &str) -> String {
    format!("{prefix}:parts")
}

/// The call of a gateway; [`read`] reads its answer.
pub(in crate::store::redis) fn invocation(name: &str, time: &Time, call: &PartCall) -> Invocation {
    let script = text::parts();
    let mut command = script.call(1);
    let held = call.held.map_or_else(|| "-1".to_owned(), |held| held.to_string());
    command.arg(name).arg(format!("{} {} {held}", call.gateway, call.number));
    command.arg(call.over.join(" "));
    with_time(&mut command, time);
    Invocation { script, command }
}

/// `None`: this is no answer of the script.
pub(in crate::store::redis) fn read(value: &Value) -> Option<PartAnswer> {
    let Value::Array(words) = value else { return None };
    let (numbers, neighbours) = words.split_first_chunk::<5>()?;
    let [Value::Int(units), Value::Int(fair), Value::Int(gateways), Value::Int(changed), Value::Int(quiet_for)] =
        numbers
    else {
        return None;
    };
    let name = |word: &Value| match word {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    };
    Some(PartAnswer {
        units: u64::try_from(*units).ok()?,
        fair: u64::try_from(*fair).ok()?,
        gateways: u32::try_from(*gateways).ok()?,
        has_changed: *changed == 1,
        quiet_for: Duration::from_micros(u64::try_from(*quiet_for).ok()?),
        neighbours: neighbours.iter().filter_map(name).collect(),
    })
}
