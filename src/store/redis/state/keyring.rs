//! The keys that all gateways on one Redis sign with: random seeds that Redis keeps, and the password that it does not.

use crate::store::key_ring::random_seed;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::time;
use tokio::time::Instant;

use crate::clock::Timestamp;
use crate::signing::KeySeed;
use crate::store::redis::scripts;
use crate::store::redis::topology::node::Node;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::fault::Fault;

/// How often it is asked whether there is a new key: what another gateway signs with it is not believed here until then.
const ROUND: Duration = Duration::from_secs(60);

/// The same after a question that was not answered.
const PACE: Duration = Duration::from_millis(250);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// A key as Redis keeps it: 16 digits of microseconds, then the secret.
const RECORD: usize = MADE + 32;

const MADE: usize = 16;

/// Learns the keys as soon as their server answers, again when it comes back, and now and then.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>) {
    let name = scripts::keyring_name(&shared.settings.key_prefix);
    loop {
        let node = shared.found(&name).await;
        let begun = Instant::now();
        let learnt = time::timeout(PATIENCE, learn(&shared, &node, &name)).await;
        shared.asked_for_keys.store(true, Ordering::Release);
        shared.tell();
        if matches!(learnt, Ok(Ok(()))) {
            drop(time::timeout(ROUND, shared.gone(&name, &node)).await);
        } else {
            time::sleep_until(begun + PACE).await;
        }
    }
}

/// Over a connection of its own: this is no decision, and nobody waits for it.
async fn learn(shared: &SharedRedis, node: &Node, name: &str) -> Result<(), Fault> {
    let connection = shared.connector.connect(&node.address).await?;
    // Whose clock it is matters only to who keeps the seed.
    let candidate = random_seed(Timestamp::EPOCH);
    let scripts::Invocation { script, command } = scripts::keyring(name, &candidate.secret, &shared.time);
    let answer = match connection.send(&command).await? {
        Value::ServerError(error) if error.code() == "NOSCRIPT" => {
            connection.load(&script.text).await?;
            connection.ask(&command).await?
        }
        Value::ServerError(error) => {
            if matches!(error.code(), "MOVED" | "ASK") {
                shared.topology.doubted.notify_one();
            }
            return Err(Fault::of_answer(&error));
        }
        answer => answer,
    };
    let Value::BulkString(kept) = answer else { return Err(Fault::nonsense()) };
    let seeds = read(&kept).ok_or_else(Fault::nonsense)?;
    shared.key_ring.share(&seeds, &pepper(shared));
    Ok(())
}

/// What a reader of the seeds does not know, where Redis has a password; and nothing that one prefix signed is worth
/// anything under another.
fn pepper(shared: &SharedRedis) -> Vec<u8> {
    let password = shared.connector.login.password.as_deref().unwrap_or_default();
    [&(password.len() as u64).to_le_bytes()[..], password.as_bytes(), shared.settings.key_prefix.as_bytes()].concat()
}

/// `None`: these are no keys.
fn read(kept: &[u8]) -> Option<Vec<KeySeed>> {
    let (records, rest) = kept.as_chunks::<RECORD>();
    if records.is_empty() || !rest.is_empty() {
        return None;
    }
    let seed = |record: &[u8; RECORD]| {
        let (made, secret) = record.split_at(MADE);
        let made = std::str::from_utf8(made).ok()?.parse().ok()?;
        Some(KeySeed { made: Timestamp::from_micros(made), secret: secret.try_into().ok()? })
    };
    records.iter().map(seed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_kept() {
        let secret = [7; 32];
        let record = [&b"1700000000000000"[..], &secret].concat();
        let read = |kept: &[u8]| read(kept).map(|seeds| seeds.iter().map(|seed| seed.made.as_micros()).collect());
        assert_eq!(read(&record), Some(vec![1_700_000_000_000_000]));
        assert_eq!(read(&[&record[..], &record].concat()).map(|seeds: Vec<_>| seeds.len()), Some(2));
        assert_eq!(read(b""), None);
        assert_eq!(read(&record[1..]), None);
        assert_eq!(read(&[b'x'; RECORD]), None);
    }
}
