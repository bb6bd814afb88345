//! Sessions in Redis, which all gateways share: Redis decides whose a success is and publishes what is learned, and
//! gateways load what they missed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::time;
use tracing::warn;

use super::store::RedisStore;
use crate::rules::decision::{SessionChange, SignIn};
use crate::store::Sessions;
use crate::store::redis::scripts;
use crate::store::redis::scripts::sessions::{LoadPosition, SessionCall, name};
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::node::Failure;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::fault::DownCause;
use crate::store::sessions::codec::{KnownSession, SessionRecord, read_hashes};
use crate::store::sessions::sync::{SessionPage, SessionVersion};
use crate::words::clock::{Clock, Timestamp};

/// The shortest and the longest pause between syncs while changes arrive as messages.
const SUBSCRIBED_PACE: Range<u64> = 15_000..30_000;

/// The pause while they do not, while some gateway cannot publish its changes, or while there is more to send.
const PACE: Duration = Duration::from_millis(500);

/// The pause until the first answer.
const FIRST_PACE: Duration = Duration::from_millis(20);

/// The pause while the server does not let this gateway ask.
const REFUSED_PACE: Duration = Duration::from_secs(5);

/// How often uses are told to Redis, and expired sessions are removed.
const USES_PACE: Duration = Duration::from_secs(1);

/// How many sessions are sent in one call, for which the server takes a millisecond, and in one sync.
const SENT_AT_ONCE: usize = 200;

const MOST_SENT: usize = 10_000;

impl RedisStore {
    /// Whether a success is the account's own; then its sessions are learned. `None`: Redis does not answer.
    pub(in crate::store) async fn sign_in(
        &self,
        sessions: &Sessions,
        sign_in: &SignIn,
        now: Timestamp,
    ) -> Option<bool> {
        let channel = self.core.shared.channel();
        let invocation = call(&self.core.shared, &channel, sessions).sign_in(sign_in);
        let answer = ask(&self.core.shared, &self.core.links, invocation).await.ok()?;
        let (is_own, version) = read_answer(&answer)?;
        if is_own {
            let learned: Vec<KnownSession> = KnownSession::learned(sign_in, now).collect();
            sessions.receive_learned(version, &learned);
        }
        Some(is_own)
    }

    /// Applies changes. `known` is what this gateway knows of the old session of each. `Err`: it is not known whether
    /// Redis has applied them.
    pub(in crate::store) async fn change_sessions(
        &self,
        sessions: &Sessions,
        changes: &[(SessionChange, Option<KnownSession>)],
    ) -> Result<(), Failure> {
        let channel = self.core.shared.channel();
        let invocation = call(&self.core.shared, &channel, sessions).change(changes);
        ask(&self.core.shared, &self.core.links, invocation).await.map(drop)
    }
}

/// Follows the sessions in Redis for ever, over connections of its own: loads them at first and whenever a change may
/// have been missed. Messages bring all other changes.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>, sessions: Arc<Sessions>, clock: Clock) {
    let links = Links::unobserved(&shared);
    let name = name(&shared.settings.key_prefix);
    let (mut warned, mut has_synced) = (false, false);
    loop {
        let node = shared.wait_for_owner(&name).await;
        let synced = sync(&shared, &links, &sessions, &clock).await;
        if !matches!(synced, Err(Failure::Open | Failure::Unknown))
            && !shared.sessions_requested.swap(true, Ordering::AcqRel)
        {
            shared.notify();
        }
        let (pace, takes_requests) = match synced {
            Ok(pace) => {
                warned = false;
                // At first it is not known yet whether gateways may publish.
                let hears_of_changes = has_synced && shared.may_publish.load(Ordering::Acquire);
                has_synced = true;
                (if hears_of_changes { pace } else { PACE }, true)
            }
            Err(Failure::Refused) => {
                if !warned && node.is_up() {
                    warn!(
                        "redis does not let this gateway store sessions under `{name}`: its sessions hold only in this \
                         gateway. Allow its user the commands that docs/src/redis.md lists"
                    );
                    warned = true;
                }
                (REFUSED_PACE, false)
            }
            Err(Failure::Open | Failure::Unknown) => {
                let is_first = !shared.sessions_requested.load(Ordering::Acquire);
                time::sleep(if is_first { FIRST_PACE } else { PACE }).await;
                continue;
            }
        };
        tokio::select! {
            // If the subscription was lost, the server may be down too.
            () = sessions.sync_requested(), if takes_requests => {
                if !sessions.is_subscribed() {
                    drop(time::timeout(PACE, shared.wait_for_other_owner(&name, &node)).await);
                }
            }
            () = shared.wait_for_other_owner(&name, &node) => {}
            () = time::sleep(pace) => {}
        }
    }
}

/// Tells Redis for ever which sessions are used, many at once, and removes expired ones.
pub(in crate::store::redis) async fn tell_uses(shared: Arc<SharedRedis>, sessions: Arc<Sessions>, clock: Clock) {
    let links = Links::unobserved(&shared);
    let channel = shared.channel();
    loop {
        time::sleep(USES_PACE).await;
        let now = clock.now();
        sessions.remove_expired(now);
        for used in sessions.take_used(now).chunks(SENT_AT_ONCE) {
            let answer = ask(&shared, &links, call(&shared, &channel, &sessions).tell_uses(used, now)).await;
            match answer.as_ref().map(fields) {
                Ok([_, _, Value::BulkString(unknown)]) => {
                    let unknown = read_hashes(unknown);
                    if !unknown.is_empty() {
                        sessions.mark_unsent(&unknown);
                        sessions.request_sync();
                    }
                }
                // They are sent in full when Redis answers again.
                _ => sessions.mark_unsent(&used.iter().map(|known| known.session).collect::<Vec<_>>()),
            }
        }
    }
}

/// Loads what changed, sends what Redis does not have, and returns the longest pause until the next sync.
async fn sync(shared: &SharedRedis, links: &Links, sessions: &Sessions, clock: &Clock) -> Result<Duration, Failure> {
    let channel = shared.channel();
    let call = call(shared, &channel, sessions);
    let before = sessions.version();
    let (now, unpublished_until) = version(shared, links).await?;
    forget(shared, links, sessions, call).await?;
    // Redis has lost its sessions: those that this gateway knows are sent again.
    let is_lost = before.is_some_and(|before| now.is_none_or(|now| !now.follows(before)));
    if is_lost {
        sessions.mark_all_unsent();
    }
    match now {
        None => sessions.end_load(None, false),
        // A version that was read before a message arrived is older than what is known.
        Some(now) if sessions.version().is_some_and(|known| known.follows(now) && known.stamp() >= now.stamp()) => {}
        Some(_) => load(shared, links, sessions, call, before.filter(|_| !is_lost), clock).await?,
    }
    let unsent = sessions.unsent(MOST_SENT, clock.now());
    for part in unsent.chunks(SENT_AT_ONCE) {
        let sent = ask(shared, links, call.send(part, clock.now())).await;
        if let Err(failure) = sent {
            sessions.mark_unsent(&[]);
            return Err(failure);
        }
        for known in part {
            sessions.mark_sent(known);
        }
    }
    let all_published = unpublished_until.is_none_or(|until| until <= clock.now());
    let is_complete = sessions.is_subscribed() && all_published && unsent.len() < MOST_SENT;
    Ok(if is_complete { Duration::from_millis(fastrand::u64(SUBSCRIBED_PACE)) } else { PACE })
}

/// Has Redis forget what was forgotten here while it did not answer.
async fn forget(
    shared: &SharedRedis,
    links: &Links,
    sessions: &Sessions,
    call: SessionCall<'_>,
) -> Result<(), Failure> {
    let forgotten = sessions.take_forgotten();
    let mut rest = forgotten.as_slice();
    while !rest.is_empty() {
        let (part, later) = rest.split_at(rest.len().min(SENT_AT_ONCE));
        let changes: Vec<_> = part.iter().map(|session| (SessionChange::Forget(*session), None)).collect();
        if let Err(failure) = ask(shared, links, call.change(&changes)).await {
            sessions.note_forgotten(rest.iter().copied());
            return Err(failure);
        }
        rest = later;
    }
    Ok(())
}

/// Loads the sessions that have changed since `before`, or all of them.
async fn load(
    shared: &SharedRedis,
    links: &Links,
    sessions: &Sessions,
    call: SessionCall<'_>,
    before: Option<SessionVersion>,
    clock: &Clock,
) -> Result<(), Failure> {
    let mut since = before.map_or(0, SessionVersion::stamp);
    loop {
        let is_whole = since == 0;
        sessions.begin_load(is_whole);
        let mut position = LoadPosition { forgotten: since.to_string(), changed: since.to_string() };
        let loaded = loop {
            let answer = ask(shared, links, call.page(&position)).await?;
            let page = read_page(&answer).ok_or(Failure::Refused)?;
            if page.known_since > since && !is_whole {
                break None;
            }
            position = page.position;
            sessions.load(&page.page, clock.now());
            if page.is_last {
                break Some(page.page.version);
            }
        };
        if let Some(version) = loaded {
            sessions.end_load(Some(version), is_whole);
            return Ok(());
        }
        // Redis does not know any more what was forgotten since then.
        since = 0;
    }
}

/// A page, and where the next one begins.
struct LoadedPage {
    page: SessionPage,
    /// Every session that was forgotten since then is known.
    known_since: u64,
    position: LoadPosition,
    is_last: bool,
}

fn read_page(answer: &Value) -> Option<LoadedPage> {
    let [version, known_since, forgotten, changed, gone, learned, is_last] = fields(answer) else { return None };
    let (Value::BulkString(gone), Value::BulkString(learned)) = (gone, learned) else { return None };
    let mut records = SessionRecord::read_forgotten(gone);
    records.extend(SessionRecord::read_learned(learned));
    Some(LoadedPage {
        page: SessionPage { version: SessionVersion::read(word(version)?.split(' '))?, records },
        known_since: word(known_since)?.parse().ok()?,
        position: LoadPosition { forgotten: word(forgotten)?, changed: word(changed)? },
        is_last: matches!(is_last, Value::Int(1)),
    })
}

/// The version of the sessions, and until when there may be changes that were not published.
async fn version(shared: &SharedRedis, links: &Links) -> Result<(Option<SessionVersion>, Option<Timestamp>), Failure> {
    let prefix = &shared.settings.key_prefix;
    let command = scripts::sessions::version(prefix);
    match links.command(links.slot(name(prefix).as_bytes()), &command).await? {
        Value::Nil => Ok((None, None)),
        Value::ServerError(error) if DownCause::of_answer(&error) == DownCause::NoPermission => Err(Failure::Refused),
        Value::ServerError(_) => Err(Failure::Unknown),
        answer => {
            let text = word(&answer).unwrap_or_default();
            let unpublished_until = text.split(' ').nth(3).and_then(|until| until.parse().ok());
            Ok((SessionVersion::read(text.split(' ')), unpublished_until.map(Timestamp::from_micros)))
        }
    }
}

fn call<'c>(shared: &'c SharedRedis, channel: &'c str, sessions: &Sessions) -> SessionCall<'c> {
    SessionCall { prefix: &shared.settings.key_prefix, channel, time: &shared.time, most: sessions.most() }
}

async fn ask(shared: &SharedRedis, links: &Links, invocation: scripts::Invocation) -> Result<Value, Failure> {
    let slot = links.slot(name(&shared.settings.key_prefix).as_bytes());
    links.call_best_effort(slot, &invocation).await
}

/// Reads whether a success is the account's own, and the version.
fn read_answer(answer: &Value) -> Option<(bool, SessionVersion)> {
    let [Value::Int(is_own), version, _] = fields(answer) else { return None };
    Some((*is_own == 1, SessionVersion::read(word(version)?.split(' '))?))
}

fn fields(answer: &Value) -> &[Value] {
    match answer {
        Value::Array(fields) => fields,
        _ => &[],
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}
