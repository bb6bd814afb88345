//! The records of gateways in Redis. No decision depends on them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::Mutex;
use tokio::time;

use crate::store::redis::ReceivedQuestions;
use crate::store::redis::settings::Time;
use crate::store::redis::state::settle::join_all;
use crate::store::redis::topology::node::RedisNode;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::connection::RedisConnection;
use crate::store::redis::transport::fault::{DownCause, ServerFault};
use crate::words::clock::Timestamp;

/// How long a read may take. Whoever asks is answered without the others then.
const READ_PATIENCE: Duration = Duration::from_millis(300);

/// How long a write may take, which nobody waits for.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);

/// In bytes.
const MAX_COMMAND: usize = 2 << 20;

/// The records in Redis, over a connection of their own: a long answer delays no decision, and a failure opens no breaker.
#[derive(Debug)]
pub struct RecordLink {
    shared: Arc<SharedRedis>,
    connection: Mutex<CurrentConnection>,
}

/// The connection in use, and how many there were.
#[derive(Debug, Default)]
struct CurrentConnection {
    open: Option<(Arc<RedisNode>, RedisConnection)>,
    number: u64,
}

/// The moment of a registration, and for how long it holds.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    pub now: Timestamp,
    pub kept: Duration,
}

/// Why Redis has neither taken nor sent records.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RecordsUnavailable {
    #[error("Redis does not answer")]
    Away,
    #[error("Redis does not allow it")]
    Refused,
}

impl RecordLink {
    pub fn new(shared: &Arc<SharedRedis>) -> Self {
        Self { shared: Arc::clone(shared), connection: Mutex::default() }
    }

    /// The questions that this process has heard.
    pub fn questions(&self) -> &ReceivedQuestions {
        &self.shared.questions
    }

    /// Whether this process hears every question, and may ask some itself.
    pub fn hears_all(&self) -> bool {
        self.shared.questions.is_listening() && self.shared.may_publish.load(Ordering::Acquire)
    }

    /// Connects where there is no connection, and returns the number of the one in use: another server, or this one after
    /// a failure, has another number.
    pub async fn connect(&self) -> Result<u64, RecordsUnavailable> {
        match time::timeout(READ_PATIENCE, self.current()).await {
            Ok(Ok((_, number))) => Ok(number),
            Ok(Err(_)) | Err(_) => Err(RecordsUnavailable::Away),
        }
    }

    pub async fn time(&self) -> Result<Timestamp, RecordsUnavailable> {
        if let Time::Given(clock) = &self.shared.time {
            return Ok(clock.now());
        }
        let (answer, _) = self.call(&redis::cmd("TIME"), READ_PATIENCE).await?;
        moment(&answer).ok_or(RecordsUnavailable::Away)
    }

    /// Writes fields of a gateway. Returns how many of them are new, and the number of the connection.
    pub async fn write(
        &self,
        gateway: &str,
        fields: &[(&str, Vec<u8>)],
        registration: Option<Registration>,
    ) -> Result<(usize, u64), RecordsUnavailable> {
        let prefix = &self.shared.settings.key_prefix;
        let mut commands: Vec<Cmd> = fields.chunk_by(in_batches()).map(|batch| write(prefix, gateway, batch)).collect();
        let batches = commands.len();
        if let Some(Registration { now, kept }) = registration {
            commands.extend(register(prefix, gateway, now, kept));
        }
        let (answers, number) = self.call_all(&commands, WRITE_PATIENCE).await?;
        let added = answers.iter().take(batches).map(|answer| match answer {
            Value::Int(added) => usize::try_from(*added).unwrap_or_default(),
            _ => 0,
        });
        Ok((added.sum(), number))
    }

    /// Removes fields of a gateway.
    pub async fn remove(&self, gateway: &str, fields: &[String]) -> Result<(), RecordsUnavailable> {
        let command = remove(&self.shared.settings.key_prefix, gateway, fields);
        self.call(&command, WRITE_PATIENCE).await.map(drop)
    }

    /// The names of the gateways that have registered lately.
    pub async fn gateways(&self, now: Timestamp, kept: Duration) -> Result<Vec<String>, RecordsUnavailable> {
        let command = gateways(&self.shared.settings.key_prefix, now, kept);
        let (Value::Array(names), _) = self.call(&command, READ_PATIENCE).await? else { return Ok(Vec::new()) };
        Ok(names.into_iter().filter_map(|name| String::from_utf8(bytes(name)?).ok()).collect())
    }

    /// These fields of each of these gateways.
    pub async fn read(
        &self,
        gateways: &[String],
        fields: &[String],
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, RecordsUnavailable> {
        let prefix = &self.shared.settings.key_prefix;
        let commands: Vec<Cmd> = gateways.iter().map(|gateway| read(prefix, gateway, fields)).collect();
        let (answers, _) = self.call_all(&commands, READ_PATIENCE).await?;
        let of_gateway = |answer: Value| match answer {
            Value::Array(contents) => contents.into_iter().map(bytes).collect(),
            _ => Vec::new(),
        };
        Ok(answers.into_iter().map(of_gateway).collect())
    }

    /// Publishes a message to all gateways. `false`: this one may not.
    pub async fn publish(&self, message: &str) -> Result<bool, RecordsUnavailable> {
        if !self.shared.may_publish.load(Ordering::Acquire) {
            return Ok(false);
        }
        let mut command = redis::cmd("PUBLISH");
        command.arg(self.shared.channel()).arg(message);
        match self.call(&command, READ_PATIENCE).await {
            Ok(_) => Ok(true),
            Err(RecordsUnavailable::Refused) => Ok(false),
            Err(RecordsUnavailable::Away) => Err(RecordsUnavailable::Away),
        }
    }

    async fn call(&self, command: &Cmd, patience: Duration) -> Result<(Value, u64), RecordsUnavailable> {
        let (mut answers, number) = self.call_all(std::slice::from_ref(command), patience).await?;
        Ok((answers.pop().unwrap_or(Value::Nil), number))
    }

    /// Sends these commands together. Returns their answers and the number of the connection.
    async fn call_all(&self, commands: &[Cmd], patience: Duration) -> Result<(Vec<Value>, u64), RecordsUnavailable> {
        let called = time::timeout(patience, async {
            let (connection, number) = self.current().await?;
            let answers = join_all(commands.iter().map(|command| connection.send(command))).await;
            let answers: Result<Vec<Value>, _> = answers.into_iter().collect();
            Ok::<_, ServerFault>((answers?, number))
        });
        let Ok(Ok((answers, number))) = called.await else {
            self.connection.lock().await.open = None;
            return Err(RecordsUnavailable::Away);
        };
        for answer in &answers {
            if let Value::ServerError(error) = answer {
                if matches!(error.code(), "MOVED" | "ASK") {
                    self.shared.topology.refresh.notify_one();
                }
                let is_forbidden = DownCause::of_answer(error) == DownCause::NoPermission;
                return Err(if is_forbidden { RecordsUnavailable::Refused } else { RecordsUnavailable::Away });
            }
        }
        Ok((answers, number))
    }

    /// The connection to the server of the records.
    async fn current(&self) -> Result<(RedisConnection, u64), ServerFault> {
        let set = set(&self.shared.settings.key_prefix);
        // Without the keys of all gateways none of them could read what this one writes.
        let has_keys = self.shared.keys_requested.load(Ordering::Acquire);
        let node = self.shared.owner_of(&set).filter(|_| has_keys).ok_or_else(ServerFault::timeout)?;
        let mut current = self.connection.lock().await;
        let stale = current.open.take_if(|(of, connection)| !Arc::ptr_eq(of, &node) || !connection.is_open());
        drop(stale);
        if current.open.is_none() {
            let connection = self.shared.connector.connect(&node.address).await?;
            current.open = Some((node, connection));
            current.number += 1;
        }
        let Some((_, connection)) = &current.open else { return Err(ServerFault::nonsense()) };
        Ok((connection.clone(), current.number))
    }
}

/// The name of a field and what is written there.
type SealedField<'f> = (&'f str, Vec<u8>);

/// Puts fields together until a command is long enough. Redis holds each command in memory whole.
fn in_batches() -> impl FnMut(&SealedField<'_>, &SealedField<'_>) -> bool {
    let mut bytes = 0;
    move |(_, content), (_, next)| {
        bytes += content.len();
        let fits = bytes + next.len() <= MAX_COMMAND;
        if !fits {
            bytes = 0;
        }
        fits
    }
}

/// The time as Redis tells it: seconds and microseconds.
fn moment(answer: &Value) -> Option<Timestamp> {
    let Value::Array(words) = answer else { return None };
    let number = |word: &Value| match word {
        Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    let [seconds, micros] = words.as_slice() else { return None };
    Some(Timestamp::from_micros(number(seconds)?.checked_mul(1_000_000)?.checked_add(number(micros)?)?))
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

// The commands that keep the records of gateways. They are in one slot, by the part in braces.

/// More than any fleet has.
const MOST_READ: usize = 2000;

/// The name of the sorted set of all gateways, each with the moment in ms at which it registered.
pub(super) fn set(prefix: &str) -> String {
    format!("{prefix}:{{records}}:gateways")
}

/// The name of the hash of a gateway.
fn hash(prefix: &str, gateway: &str) -> String {
    format!("{prefix}:{{records}}:{gateway}")
}

/// Writes fields of a gateway. The answer is how many of them are new.
pub(super) fn write<'f>(prefix: &str, gateway: &str, fields: impl IntoIterator<Item = &'f (&'f str, Vec<u8>)>) -> Cmd {
    let mut command = redis::cmd("HSET");
    command.arg(hash(prefix, gateway));
    for (name, content) in fields {
        command.arg(*name).arg(content);
    }
    command
}

/// Names a gateway in the set, which forgets those that have not registered for long. All of it expires.
pub(super) fn register(prefix: &str, gateway: &str, now: Timestamp, kept: Duration) -> [Cmd; 4] {
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
pub(super) fn remove(prefix: &str, gateway: &str, fields: &[String]) -> Cmd {
    let mut command = redis::cmd("HDEL");
    command.arg(hash(prefix, gateway)).arg(fields);
    command
}

/// Reads the names of the gateways that have registered lately.
pub(super) fn gateways(prefix: &str, now: Timestamp, kept: Duration) -> Cmd {
    let mut command = redis::cmd("ZRANGEBYSCORE");
    command.arg(set(prefix)).arg(oldest(now, kept)).arg("+inf").arg("LIMIT").arg(0).arg(MOST_READ);
    command
}

/// Reads fields of a gateway.
pub(super) fn read(prefix: &str, gateway: &str, fields: &[String]) -> Cmd {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_as_redis_tells_it() {
        let word = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let told = Value::Array(vec![word("1700000005"), word("000042")]);
        assert_eq!(moment(&told), Some(Timestamp::from_micros(1_700_000_005_000_042)));
        assert_eq!(moment(&Value::Array(vec![word("1700000005")])), None);
        assert_eq!(moment(&Value::Array(vec![word("18446744073709551615"), word("0")])), None);
        assert_eq!(moment(&Value::Nil), None);
    }

    #[test]
    fn a_command_holds_so_much_at_most() {
        let fields: Vec<(&str, Vec<u8>)> = (0..5).map(|_| ("x", vec![0; MAX_COMMAND / 2])).collect();
        let batches: Vec<usize> = fields.chunk_by(in_batches()).map(<[_]>::len).collect();
        assert_eq!(batches, [2, 2, 1]);
    }
}
