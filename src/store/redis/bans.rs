//! Bans in Redis, seen by every gateway: decided there once, told to all, and looked after for what was not heard.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::time;
use tracing::warn;

use super::RedisStore;
use super::Shared;
use super::links::Failure;
use super::links::Links;
use super::script::bans::Call;
use super::script::bans::Decided;
use super::script::bans::name;
use crate::limit::Ladder;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::Bans;
use crate::store::bans::Subject;
use crate::store::bans::ban::Record;
use crate::store::bans::shared;
use crate::store::bans::shared::Change;
use crate::store::bans::shared::Told;
use crate::store::bans::shared::Version;

/// How often it is looked whether anything was missed, and what Redis was not told is told.
const PACE: Duration = Duration::from_millis(500);

/// The same until the first answer.
const FIRST_PACE: Duration = Duration::from_millis(20);

/// How many bans are told again in one go.
const TOLD_AT_ONCE: usize = 1000;

impl RedisStore {
    /// The ban that a limit sets now, and whether it is a new one. `None`: Redis does not answer.
    pub(in crate::store) async fn trip_ban(
        &self,
        bans: &Bans,
        subject: &Subject,
        ladder: &Ladder,
        reason: &Arc<str>,
    ) -> Option<(Record, bool)> {
        let blob = shared::blob(subject, reason);
        let invocation = call(&self.core.shared, &self.core.shared.channel()).trip(subject.id(), &blob, ladder);
        let (begins, told) = answered(ask(&self.core.shared, &self.core.links, invocation).await.ok()?)?;
        let mut record = told.record(subject.id(), bans.now())?;
        // Of the key this gateway knows more than it told.
        record.ban.subject = subject.clone();
        bans.heard(told.version, &Change::Ban(record.clone()));
        Some((record, begins))
    }

    /// Tells of a ban by hand. `false`: nobody knows whether Redis knows.
    pub(in crate::store) async fn tell_ban(&self, bans: &Bans, record: &Record) -> bool {
        let blob = shared::blob(&record.ban.subject, &record.ban.reason);
        let channel = self.core.shared.channel();
        let invocation = call(&self.core.shared, &channel).ban(record.ban.id, &blob, record.length.as_micros());
        let told = ask(&self.core.shared, &self.core.links, invocation).await.ok().and_then(answered);
        let Some((_, told)) = told else { return false };
        bans.heard(told.version, &Change::Ban(record.clone()));
        bans.told(record.ban.id);
        true
    }

    /// Lifts a ban everywhere: the one there was. `Err`: nobody knows.
    pub(in crate::store) async fn lift_ban(&self, bans: &Bans, id: BanId) -> Result<Option<Ban>, Failure> {
        let channel = self.core.shared.channel();
        let invocation = call(&self.core.shared, &channel).lift(id);
        let answer = ask(&self.core.shared, &self.core.links, invocation).await?;
        let words = words(answer);
        let [_, now, text, ..] = words.as_slice() else { return Ok(None) };
        let lifted = now.parse().ok().and_then(|now| shared::stored(id, text, now, bans.now()));
        Ok(lifted.map(|record| record.ban))
    }
}

/// Follows the bans in Redis for good, over connections of its own.
pub(super) async fn follow(shared: Arc<Shared>, bans: Arc<Bans>) {
    let links = Links::new(&shared);
    let mut warned = false;
    loop {
        bans.sweep();
        match round(&shared, &links, &bans).await {
            Ok(()) => {
                warned = false;
                shared.bans_met.store(true, Ordering::Release);
            }
            Err(Failure::Refused) => {
                if !warned && !shared.topology.map().masters.iter().any(|node| !node.is_up()) {
                    let name = name(&shared.settings.key_prefix);
                    warn!(
                        "redis does not let this gateway keep bans under `{name}`: they hold here alone. Allow its user \
                           the commands that README.md names"
                    );
                    warned = true;
                }
                shared.bans_met.store(true, Ordering::Release);
            }
            Err(Failure::Open | Failure::Unknown) => {}
        }
        let is_met = shared.bans_met.load(Ordering::Acquire);
        shared.tell();
        time::sleep(if is_met { PACE } else { FIRST_PACE }).await;
    }
}

async fn round(shared: &Shared, links: &Links, bans: &Bans) -> Result<(), Failure> {
    let channel = shared.channel();
    let call = call(shared, &channel);
    let now = Version::read(&words(ask(shared, links, call.version()).await?));
    let before = bans.version();
    if now != before {
        // Redis has lost what it knew: what was told before is told again.
        if before.is_some_and(|before| now.is_none_or(|now| !now.follows(before))) {
            bans.untell(bans.mark());
        }
        if now.is_some() {
            load(shared, links, bans, call).await?;
        }
        bans.is_at(now);
    }
    for record in bans.untold().into_iter().take(TOLD_AT_ONCE) {
        let moment = bans.now();
        let decided = Decided {
            left: record.ban.left(moment).as_micros(),
            length: record.length.as_micros(),
            step: record.step,
            by_hand: record.ban.by_hand,
            age: moment.since(record.ban.since).as_micros(),
        };
        let blob = shared::blob(&record.ban.subject, &record.ban.reason);
        let answer = ask(shared, links, call.tell(record.ban.id, &blob, decided)).await?;
        bans.told(record.ban.id);
        if let Some((_, told)) = answered(answer)
            && let Some(record) = told.record(record.ban.id, bans.now())
        {
            bans.heard(told.version, &Change::Ban(record));
        }
    }
    Ok(())
}

/// Reads them all. What is heard of meanwhile holds.
async fn load(shared: &Shared, links: &Links, bans: &Bans, call: Call<'_>) -> Result<(), Failure> {
    let mark = bans.begin_load();
    let mut cursor = "0".to_owned();
    loop {
        let Value::Array(parts) = ask(shared, links, call.page(&cursor)).await? else { return Err(Failure::Refused) };
        let [now, next, Value::Array(fields)] = parts.as_slice() else { return Err(Failure::Refused) };
        let Some(now) = word(now).and_then(|now| now.parse().ok()) else { return Err(Failure::Refused) };
        for pair in fields.chunks_exact(2) {
            let (Some(id), Some(text)) = (word(&pair[0]), word(&pair[1])) else { continue };
            let Ok(id) = id.parse::<BanId>() else { continue };
            if let Some(record) = shared::stored(id, &text, now, bans.now()) {
                bans.loaded(record);
            }
        }
        cursor = word(next).unwrap_or_default();
        if cursor == "0" || cursor.is_empty() {
            break;
        }
    }
    bans.end_load(mark);
    Ok(())
}

fn call<'c>(shared: &'c Shared, channel: &'c str) -> Call<'c> {
    Call { prefix: &shared.settings.key_prefix, channel, time: &shared.time }
}

async fn ask(shared: &Shared, links: &Links, invocation: super::script::Invocation) -> Result<Value, Failure> {
    let slot = links.slot(name(&shared.settings.key_prefix).as_bytes());
    links.call_aside(slot, &invocation).await
}

/// Whether it begins, and what it is.
fn answered(answer: Value) -> Option<(bool, Told)> {
    let words = words(answer);
    let begins = words.first()? == "1";
    Some((begins, Told::read(Version::read(words.get(1..3)?)?, words.get(3..)?)?))
}

fn words(answer: Value) -> Vec<String> {
    match answer {
        Value::Array(words) => words.iter().map(|value| word(value).unwrap_or_default()).collect(),
        _ => Vec::new(),
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}
