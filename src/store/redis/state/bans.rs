//! Bans in Redis, seen by every gateway: decided there once, told to all, and asked for where something was missed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::time;
use tokio::time::Instant;
use tracing::warn;

use super::store::RedisStore;
use crate::clock::Timestamp;
use crate::limit::Ladder;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;
use crate::store::bans::Bans;
use crate::store::bans::ban::BanRecord;
use crate::store::bans::text;
use crate::store::bans::text::BanUpdate;
use crate::store::bans::version::BanVersion;
use crate::store::redis::scripts;
use crate::store::redis::scripts::bans::BanCall;
use crate::store::redis::scripts::bans::OutageBan;
use crate::store::redis::scripts::bans::name;
use crate::store::redis::topology::links::Failure;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::breaker::Cause;

/// How long it is waited, at least and at most, until it is asked whether anything was missed, though changes are heard
/// of.
const ROUND: Range<u64> = 15_000..30_000;

/// The same while they are not, or some gateway may not tell of them.
const PACE: Duration = Duration::from_millis(500);

/// The same until the first answer.
const FIRST_PACE: Duration = Duration::from_millis(20);

/// The same where the server does not let this gateway ask.
const REFUSED_PACE: Duration = Duration::from_secs(5);

/// How often what is over is forgotten while there is nobody to ask.
const SWEEP: Duration = Duration::from_secs(15);

/// How often it is tried again whether this gateway may tell of changes, if it may not.
const MUTE_PACE: Duration = Duration::from_secs(10);

/// How many bans are told again in one go.
const TOLD_AT_ONCE: usize = 1000;

impl RedisStore {
    /// The ban that a limit sets now, and whether it is a new one. `None`: Redis does not answer.
    pub(in crate::store) async fn ban_by_limit(
        &self,
        bans: &Bans,
        subject: &BanSubject,
        ladder: &Ladder,
        reason: &Arc<str>,
    ) -> Option<(BanRecord, bool)> {
        let blob = text::blob(subject, reason);
        let invocation = call(&self.core.shared, &self.core.shared.channel()).trip(subject.id(), &blob, ladder);
        let (begins, told) = answered(ask(&self.core.shared, &self.core.links, invocation).await.ok()?)?;
        let mut record = told.record(subject.id(), bans.now())?;
        // Of the key this gateway knows more than it told.
        record.ban.subject = subject.clone();
        bans.receive_answer(told.version, &record, begins);
        Some((record, begins))
    }

    /// Tells of a ban by hand. `false`: nobody knows whether Redis knows.
    pub(in crate::store) async fn ban_by_operator(&self, bans: &Bans, record: &BanRecord) -> bool {
        let blob = text::blob(&record.ban.subject, &record.ban.reason);
        let channel = self.core.shared.channel();
        let invocation = call(&self.core.shared, &channel).ban(record.ban.id, &blob, record.length.as_micros());
        let told = ask(&self.core.shared, &self.core.links, invocation).await.ok().and_then(answered);
        let Some((_, told)) = told else { return false };
        bans.receive_answer(told.version, record, true);
        bans.mark_sent(record.ban.id);
        true
    }

    /// Lifts a ban everywhere: the one there was. `Err`: nobody knows.
    pub(in crate::store) async fn lift_ban(&self, bans: &Bans, id: BanId) -> Result<Option<Ban>, Failure> {
        let channel = self.core.shared.channel();
        let invocation = call(&self.core.shared, &channel).lift(id);
        let answer = ask(&self.core.shared, &self.core.links, invocation).await?;
        let words = words(answer);
        let [_, now, text, ..] = words.as_slice() else { return Ok(None) };
        let lifted = now.parse().ok().and_then(|now| text::read_stored(id, text, now, bans.now()));
        Ok(lifted.map(|record| record.ban))
    }
}

/// Follows the bans in Redis for good, over connections of its own: they are asked for at first, and whenever something
/// may have been missed. What is heard of is not asked for.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>, bans: Arc<Bans>) {
    let links = Links::unobserved(&shared);
    let name = name(&shared.settings.key_prefix);
    let mut permission = PublishPermission::default();
    let mut warned = false;
    loop {
        bans.remove_expired();
        // While there is none, it is still swept now and then.
        let Ok(node) = time::timeout(SWEEP, shared.found(&name)).await else { continue };
        let asked = round(&shared, &links, &bans).await;
        if !matches!(asked, Err(Failure::Open | Failure::Unknown))
            && !shared.asked_for_bans.swap(true, Ordering::AcqRel)
        {
            shared.tell();
        }
        let (pace, heeds) = match asked {
            Ok(pace) => {
                warned = false;
                let pace = if permission.is_mute(&shared, &links).await { PACE } else { pace };
                (pace, true)
            }
            Err(Failure::Refused) => {
                if !warned && node.is_up() {
                    warn!(
                        "redis does not let this gateway keep bans under `{name}`: they hold here alone. Allow its user \
                         the commands that docs/src/redis.md lists"
                    );
                    warned = true;
                }
                (REFUSED_PACE, false)
            }
            Err(Failure::Open | Failure::Unknown) => {
                let is_first = !shared.asked_for_bans.load(Ordering::Acquire);
                time::sleep(if is_first { FIRST_PACE } else { PACE }).await;
                continue;
            }
        };
        tokio::select! {
            // Where the subscription went, the server may have gone too.
            () = bans.sync_requested(), if heeds => {
                if !bans.is_subscribed() {
                    drop(time::timeout(PACE, shared.gone(&name, &node)).await);
                }
            }
            () = shared.gone(&name, &node) => permission = PublishPermission::default(),
            () = time::sleep(pace) => {}
        }
    }
}

/// Whether this gateway may tell the others what it does.
#[derive(Debug, Default)]
struct PublishPermission {
    /// When it was tried last.
    tried: Option<Instant>,
    is_mute: bool,
}

impl PublishPermission {
    /// Others most likely have the same rights: who may not tell will not hear either, and has to ask.
    async fn is_mute(&mut self, shared: &SharedRedis, links: &Links) -> bool {
        if self.tried.is_some_and(|tried| !self.is_mute || tried.elapsed() < MUTE_PACE) {
            return self.is_mute;
        }
        let channel = shared.channel();
        let mut publish = redis::cmd("PUBLISH");
        // It says nothing to anybody.
        publish.arg(&channel).arg("");
        let slot = links.slot(name(&shared.settings.key_prefix).as_bytes());
        let was_mute = self.is_mute;
        self.is_mute = match links.beside(slot, &publish).await {
            Ok(Value::ServerError(error)) => Cause::of_answer(&error) == Cause::NoPermission,
            Ok(_) => false,
            Err(_) => return self.is_mute,
        };
        self.tried = Some(Instant::now());
        if self.is_mute && !was_mute {
            warn!(
                %channel,
                "redis does not let this gateway publish on `{channel}`: other gateways do not hear of its resets, and \
                 ask redis about bans twice a second. Allow its user `+publish` and `&{channel}`"
            );
        }
        self.is_mute
    }
}

/// Asks what changed, tells what Redis does not know, and says when to ask next at the latest.
async fn round(shared: &SharedRedis, links: &Links, bans: &Bans) -> Result<Duration, Failure> {
    let channel = shared.channel();
    let call = call(shared, &channel);
    let before = bans.version();
    let (now, mute) = version(shared, links).await?;
    // Redis has lost what it knew, also when nobody heard which change that was: what was told before is told again.
    let is_lost = now.is_none_or(|now| before.is_some_and(|before| !now.follows(before)));
    if is_lost {
        bans.mark_unsent_until(bans.mark());
    }
    let is_known = now.is_none_or(|now| bans.version().is_some_and(|known| known.follows(now)));
    if is_lost || !is_known {
        if now.is_some() {
            load(shared, links, bans, call).await?;
        }
        bans.set_version(now);
    }
    let unsent = bans.unsent();
    for record in unsent.iter().take(TOLD_AT_ONCE) {
        let moment = bans.now();
        let decided = OutageBan {
            left: record.ban.left(moment).as_micros(),
            length: record.length.as_micros(),
            step: record.step,
            by_operator: record.ban.by_operator,
            age: moment.since(record.ban.since).as_micros(),
        };
        let blob = text::blob(&record.ban.subject, &record.ban.reason);
        let answer = ask(shared, links, call.tell(record.ban.id, &blob, decided)).await?;
        bans.mark_sent(record.ban.id);
        if let Some((_, told)) = answered(answer)
            && let Some(record) = told.record(record.ban.id, bans.now())
        {
            bans.receive_answer(told.version, &record, true);
        }
    }
    let is_mute = mute.is_some_and(|until| until > bans.now());
    let is_told = bans.is_subscribed() && !is_mute && unsent.len() <= TOLD_AT_ONCE;
    Ok(if is_told { Duration::from_millis(fastrand::u64(ROUND)) } else { PACE })
}

/// Which changes there were, and until when there may be some that nobody is told of.
async fn version(shared: &SharedRedis, links: &Links) -> Result<(Option<BanVersion>, Option<Timestamp>), Failure> {
    let prefix = &shared.settings.key_prefix;
    let answer = links.beside(links.slot(name(prefix).as_bytes()), &scripts::bans::version(prefix)).await?;
    match answer {
        Value::Nil => Ok((None, None)),
        Value::ServerError(error) if Cause::of_answer(&error) == Cause::NoPermission => Err(Failure::Refused),
        Value::ServerError(_) => Err(Failure::Unknown),
        answer => {
            let words: Vec<String> = word(&answer).unwrap_or_default().split(' ').map(str::to_owned).collect();
            let mute = words.get(2).and_then(|until| until.parse().ok()).map(Timestamp::from_micros);
            Ok((BanVersion::read(&words), mute))
        }
    }
}

/// Reads them all. What is heard of meanwhile holds.
async fn load(shared: &SharedRedis, links: &Links, bans: &Bans, call: BanCall<'_>) -> Result<(), Failure> {
    let mark = bans.begin_load();
    let mut cursor = "0".to_owned();
    loop {
        let Value::Array(parts) = ask(shared, links, call.page(&cursor)).await? else { return Err(Failure::Refused) };
        let [now, next, Value::Array(fields)] = parts.as_slice() else { return Err(Failure::Refused) };
        let Some(now) = word(now).and_then(|now| now.parse().ok()) else { return Err(Failure::Refused) };
        for pair in fields.chunks_exact(2) {
            let (Some(id), Some(text)) = (word(&pair[0]), word(&pair[1])) else { continue };
            let Ok(id) = id.parse::<BanId>() else { continue };
            if let Some(record) = text::read_stored(id, &text, now, bans.now()) {
                bans.load(record);
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

fn call<'c>(shared: &'c SharedRedis, channel: &'c str) -> BanCall<'c> {
    BanCall { prefix: &shared.settings.key_prefix, channel, time: &shared.time }
}

async fn ask(shared: &SharedRedis, links: &Links, invocation: scripts::Invocation) -> Result<Value, Failure> {
    let slot = links.slot(name(&shared.settings.key_prefix).as_bytes());
    links.call_aside(slot, &invocation).await
}

/// Whether it begins, and what it is.
fn answered(answer: Value) -> Option<(bool, BanUpdate)> {
    let words = words(answer);
    let begins = words.first()? == "1";
    Some((begins, BanUpdate::read(BanVersion::read(words.get(1..3)?)?, words.get(3..)?)?))
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
