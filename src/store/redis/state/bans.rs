//! Bans in Redis, which all gateways share: Redis decides a ban and publishes it, and gateways load what they missed.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use redis::Value;
use tokio::sync::oneshot;
use tokio::time;
use tokio::time::Instant;
use tracing::warn;

use super::keyring;
use super::store::{RedisCore, RedisStore};
use crate::rules::limit::Ladder;
use crate::store::bans::ban::BanRecord;
use crate::store::bans::codec::BanUpdate;
use crate::store::bans::sync::{BanChange, BanVersion};
use crate::store::bans::{Ban, BanId, BanSubject, Bans, codec};
use crate::store::redis::scripts;
use crate::store::redis::scripts::bans::{BanCall, BanCommand, OutageBan, name};
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::node::Failure;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::fault::DownCause;
use crate::words::clock::Timestamp;

/// The shortest and the longest pause between syncs while changes arrive as messages.
const SUBSCRIBED_PACE: Range<u64> = 15_000..30_000;

/// The pause while they do not, or while some gateway cannot publish its changes.
const PACE: Duration = Duration::from_millis(500);

/// The pause until the first answer.
const FIRST_PACE: Duration = Duration::from_millis(20);

/// The pause while the server does not let this gateway ask.
const REFUSED_PACE: Duration = Duration::from_secs(5);

/// How often expired bans are removed during an outage.
const EXPIRY_PACE: Duration = Duration::from_secs(15);

/// How often this gateway checks again whether it may publish.
const PERMISSION_PACE: Duration = Duration::from_secs(10);

/// How many unsent bans are sent in one sync.
const MOST_SENT: usize = 1000;

impl RedisStore {
    /// Bans because a limit was reached. Returns the ban and whether it is new. `None`: Redis does not answer.
    pub(in crate::store) async fn ban_by_limit(
        &self,
        bans: &Bans,
        subject: &BanSubject,
        ladder: &Ladder,
        reason: &Arc<str>,
    ) -> Option<(BanRecord, bool)> {
        let ring = self.core.shared.key_ring.load();
        let blob = codec::blob(subject, reason, None, &ring);
        let command = BanCommand::ban_by_limit(subject.id(), blob, ladder);
        let (begins, update) = read_answer(self.core.change_ban(command).await.ok()?, bans.now())?;
        let mut record = update.record(subject.id(), &ring)?;
        // This gateway knows more about the key than it sent.
        record.describe(subject);
        bans.receive_answer(update.version, &record.clone().into(), begins);
        Some((record, begins))
    }

    /// Sends a ban of an operator. `false`: it is not known whether Redis has it.
    pub(in crate::store) async fn ban_by_operator(&self, bans: &Bans, record: &BanRecord) -> bool {
        let ring = self.core.shared.key_ring.load();
        let blob = codec::blob(&record.ban.subject, &record.ban.reason, record.sealed(), &ring);
        let command = BanCommand::ban_by_operator(record.ban.id, blob, record.length.as_micros());
        let answer = self.core.change_ban(command).await.ok();
        let Some((_, update)) = answer.and_then(|answer| read_answer(answer, bans.now())) else { return false };
        bans.receive_answer(update.version, &record.clone().into(), true);
        bans.mark_sent(record.ban.id);
        true
    }

    /// Lifts a ban for all gateways and returns it. `Err`: it is not known whether Redis has lifted it. The caller holds
    /// [`Bans::pause_resends`].
    pub(in crate::store) async fn lift_ban(&self, bans: &Bans, id: BanId) -> Result<Option<Ban>, Failure> {
        let answer = self.core.change_ban(BanCommand::lift(id)).await?;
        let words = words(answer);
        let [was_there, begun, changes, now, text] = words.as_slice() else { return Err(Failure::Refused) };
        let version = BanVersion::read(&[begun.clone(), changes.clone()]);
        let Some(version) = version.filter(|_| was_there == "1") else {
            bans.receive_absence(version, id);
            return Ok(None);
        };
        bans.receive_answer(version, &BanChange::Lift(id), true);
        let ring = self.core.shared.key_ring.load();
        let lifted = now.parse().ok().and_then(|now| codec::read_stored(id, text, now, bans.now(), &ring));
        Ok(lifted.map(|record| record.ban))
    }
}

/// Follows the bans in Redis for ever, over connections of its own: loads them at first and whenever a change may have
/// been missed. Messages bring all other changes.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>, bans: Arc<Bans>) {
    let links = Links::unobserved(&shared);
    let name = name(&shared.settings.key_prefix);
    let mut permission = PublishPermission::default();
    let mut warned = false;
    loop {
        bans.remove_expired();
        // Expired bans are removed also while no server is up.
        let Ok(node) = time::timeout(EXPIRY_PACE, shared.wait_for_owner(&name)).await else { continue };
        let synced = sync(&shared, &links, &bans).await;
        if !matches!(synced, Err(Failure::Open | Failure::Unknown))
            && !shared.bans_requested.swap(true, Ordering::AcqRel)
        {
            shared.notify();
        }
        let (pace, takes_requests) = match synced {
            Ok(pace) => {
                warned = false;
                let pace = if permission.is_denied(&shared, &links).await { PACE } else { pace };
                (pace, true)
            }
            Err(Failure::Refused) => {
                if !warned && node.is_up() {
                    warn!(
                        "redis does not let this gateway store bans under `{name}`: its bans hold only in this gateway. \
                         Allow its user the commands that docs/src/redis.md lists"
                    );
                    warned = true;
                }
                (REFUSED_PACE, false)
            }
            Err(Failure::Open | Failure::Unknown) => {
                let is_first = !shared.bans_requested.load(Ordering::Acquire);
                time::sleep(if is_first { FIRST_PACE } else { PACE }).await;
                continue;
            }
        };
        tokio::select! {
            // If the subscription was lost, the server may be down too.
            () = bans.sync_requested(), if takes_requests => {
                if !bans.is_subscribed() {
                    drop(time::timeout(PACE, shared.wait_for_other_owner(&name, &node)).await);
                }
            }
            () = shared.wait_for_other_owner(&name, &node) => permission = PublishPermission::default(),
            () = time::sleep(pace) => {}
        }
    }
}

/// Whether this gateway may publish its changes.
#[derive(Debug, Default)]
struct PublishPermission {
    /// When it was checked last.
    checked: Option<Instant>,
    is_denied: bool,
}

impl PublishPermission {
    /// Other gateways most likely have the same permissions: if this one may not publish, it cannot rely on their
    /// messages and has to ask.
    async fn is_denied(&mut self, shared: &SharedRedis, links: &Links) -> bool {
        if self.checked.is_some_and(|checked| !self.is_denied || checked.elapsed() < PERMISSION_PACE) {
            return self.is_denied;
        }
        let channel = shared.channel();
        let mut publish = redis::cmd("PUBLISH");
        // Gateways ignore an empty message.
        publish.arg(&channel).arg("");
        let slot = links.slot(name(&shared.settings.key_prefix).as_bytes());
        let was_denied = self.is_denied;
        self.is_denied = match links.command(slot, &publish).await {
            Ok(Value::ServerError(error)) => DownCause::of_answer(&error) == DownCause::NoPermission,
            Ok(_) => false,
            Err(_) => return self.is_denied,
        };
        self.checked = Some(Instant::now());
        shared.may_publish.store(!self.is_denied, Ordering::Release);
        if self.is_denied && !was_denied {
            warn!(
                %channel,
                "redis does not let this gateway publish on `{channel}`: other gateways do not learn of its resets, and \
                 ask redis about bans twice a second. Allow its user `+publish` and `&{channel}`"
            );
        }
        self.is_denied
    }
}

/// Loads what changed, sends what Redis does not have, and returns the longest pause until the next sync.
async fn sync(shared: &SharedRedis, links: &Links, bans: &Bans) -> Result<Duration, Failure> {
    let channel = shared.channel();
    let call = call(shared, &channel);
    let before = bans.version();
    let (now, unpublished_until) = version(shared, links).await?;
    // Redis has lost its bans: those that this gateway had sent are sent again.
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
    // Gateways that come later must be able to decrypt what is sent: a Redis that lost its bans may have lost the keys too.
    if (is_lost && before.is_some()) || !unsent.is_empty() {
        keyring::refresh(shared, bans).await;
    }
    for records in unsent[..unsent.len().min(MOST_SENT)].chunks(MOST_CHANGES) {
        send(shared, links, bans, call, records).await?;
    }
    let all_published = unpublished_until.is_none_or(|until| until <= bans.now());
    let is_complete = bans.is_subscribed() && all_published && unsent.len() <= MOST_SENT;
    Ok(if is_complete { Duration::from_millis(fastrand::u64(SUBSCRIBED_PACE)) } else { PACE })
}

/// Sends bans that Redis does not have.
async fn send(
    shared: &SharedRedis,
    links: &Links,
    bans: &Bans,
    call: BanCall<'_>,
    records: &[BanRecord],
) -> Result<(), Failure> {
    let _resending = bans.resend().await;
    // Some were lifted meanwhile, or sent.
    let unsent: Vec<&BanRecord> = records.iter().filter(|record| bans.is_unsent(record.ban.id)).collect();
    if unsent.is_empty() {
        return Ok(());
    }
    let (moment, ring) = (bans.now(), shared.key_ring.load());
    let command = |record: &&BanRecord| {
        let ban = OutageBan {
            left: record.ban.left(moment).as_micros(),
            length: record.length.as_micros(),
            step: record.step,
            by_operator: record.ban.by_operator,
            age: moment.since(record.ban.since).as_micros(),
        };
        BanCommand::send(
            record.ban.id,
            codec::blob(&record.ban.subject, &record.ban.reason, record.sealed(), &ring),
            ban,
        )
    };
    let commands: Vec<BanCommand> = unsent.iter().map(command).collect();
    let Value::Array(answers) = ask(shared, links, call.change(&commands)).await? else { return Err(Failure::Refused) };
    for (record, answer) in unsent.into_iter().zip(answers) {
        bans.mark_sent(record.ban.id);
        if let Some((_, update)) = read_answer(answer, bans.now())
            && let Some(record) = update.record(record.ban.id, &ring)
        {
            bans.receive_answer(update.version, &record.into(), true);
        }
    }
    Ok(())
}

/// The version of the bans, and until when there may be changes that were not published.
async fn version(shared: &SharedRedis, links: &Links) -> Result<(Option<BanVersion>, Option<Timestamp>), Failure> {
    let prefix = &shared.settings.key_prefix;
    let answer = links.command(links.slot(name(prefix).as_bytes()), &scripts::bans::version(prefix)).await?;
    match answer {
        Value::Nil => Ok((None, None)),
        Value::ServerError(error) if DownCause::of_answer(&error) == DownCause::NoPermission => Err(Failure::Refused),
        Value::ServerError(_) => Err(Failure::Unknown),
        answer => {
            let words: Vec<String> = word(&answer).unwrap_or_default().split(' ').map(str::to_owned).collect();
            let unpublished_until = words.get(2).and_then(|until| until.parse().ok()).map(Timestamp::from_micros);
            Ok((BanVersion::read(&words), unpublished_until))
        }
    }
}

/// Loads all bans. Changes that arrive meanwhile are kept.
async fn load(shared: &SharedRedis, links: &Links, bans: &Bans, call: BanCall<'_>) -> Result<(), Failure> {
    let mark = bans.begin_load();
    let ring = shared.key_ring.load();
    let mut cursor = "0".to_owned();
    loop {
        let Value::Array(parts) = ask(shared, links, call.page(&cursor)).await? else { return Err(Failure::Refused) };
        let [now, next, Value::Array(fields)] = parts.as_slice() else { return Err(Failure::Refused) };
        let Some(now) = word(now).and_then(|now| now.parse().ok()) else { return Err(Failure::Refused) };
        for pair in fields.chunks_exact(2) {
            let (Some(id), Some(text)) = (word(&pair[0]), word(&pair[1])) else { continue };
            let Ok(id) = id.parse::<BanId>() else { continue };
            if let Some(record) = codec::read_stored(id, &text, now, bans.now(), &ring) {
                bans.load(record);
            }
        }
        cursor = word(next).unwrap_or_default();
        if cursor == "0" || cursor.is_empty() {
            break;
        }
    }
    bans.end_load(mark);
    // Other keys may have arrived meanwhile.
    bans.open_sealed(&shared.key_ring.load());
    Ok(())
}

fn call<'c>(shared: &'c SharedRedis, channel: &'c str) -> BanCall<'c> {
    BanCall { prefix: &shared.settings.key_prefix, channel, time: &shared.time }
}

async fn ask(shared: &SharedRedis, links: &Links, invocation: scripts::Invocation) -> Result<Value, Failure> {
    let slot = links.slot(name(&shared.settings.key_prefix).as_bytes());
    links.call_best_effort(slot, &invocation).await
}

/// Reads whether a ban begins now, and the ban.
fn read_answer(answer: Value, now: Timestamp) -> Option<(bool, BanUpdate)> {
    let words = words(answer);
    let begins = words.first()? == "1";
    Some((begins, BanUpdate::read(BanVersion::read(words.get(1..3)?)?, words.get(3..)?, now)?))
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

// Changes that wait to be sent: those that gather while a call is under way go as one call and one message.

/// The most changes of one call: so many take Redis a few milliseconds.
const MOST_CHANGES: usize = 100;

/// The changes of one core, in the order in which they are made.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct BanQueue(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<WaitingChange>,
    /// A task sends them.
    is_sending: bool,
}

#[derive(Debug)]
struct WaitingChange {
    command: BanCommand,
    answer: oneshot::Sender<Result<Value, Failure>>,
}

impl BanQueue {
    /// Returns whether the caller is to see that they are sent.
    fn push(&self, change: WaitingChange) -> bool {
        let mut queue = self.0.lock();
        queue.waiting.push(change);
        !mem::replace(&mut queue.is_sending, true)
    }

    /// `None`: nothing waits, and whoever comes next begins to send again.
    fn next_batch(&self) -> Option<Vec<WaitingChange>> {
        let mut queue = self.0.lock();
        let count = queue.waiting.len().min(MOST_CHANGES);
        queue.is_sending = count > 0;
        (count > 0).then(|| queue.waiting.drain(..count).collect())
    }
}

impl RedisCore {
    /// Changes a ban, and tells every gateway. The change is made even if the caller is dropped.
    pub(super) async fn change_ban(self: &Arc<Self>, command: BanCommand) -> Result<Value, Failure> {
        let (answer, receiver) = oneshot::channel();
        if self.bans.push(WaitingChange { command, answer }) {
            let own = Arc::clone(self);
            self.tasks.spawn(async move { own.send_ban_changes().await });
        }
        receiver.await.unwrap_or(Err(Failure::Unknown))
    }

    async fn send_ban_changes(&self) {
        while let Some(batch) = self.bans.next_batch() {
            let (commands, answers): (Vec<_>, Vec<_>) =
                batch.into_iter().map(|waiting| (waiting.command, waiting.answer)).unzip();
            let answered = self.send_changes(&commands).await;
            for (place, answer) in answers.into_iter().enumerate() {
                // Whoever asked may have left.
                let _left = answer.send(match &answered {
                    Ok(values) => values.get(place).cloned().ok_or(Failure::Refused),
                    Err(failure) => Err(*failure),
                });
            }
        }
    }

    async fn send_changes(&self, changes: &[BanCommand]) -> Result<Vec<Value>, Failure> {
        let channel = self.shared.channel();
        let prefix = &self.shared.settings.key_prefix;
        let call = BanCall { prefix, channel: &channel, time: &self.shared.time };
        let slot = self.links.slot(name(prefix).as_bytes());
        match self.links.call_best_effort(slot, &call.change(changes)).await? {
            Value::Array(answers) => Ok(answers),
            _ => Err(Failure::Refused),
        }
    }
}
