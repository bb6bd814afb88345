//! The signing keys of all gateways on one Redis, made from random seeds that Redis stores and the password that it
//! does not store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use tokio::time;
use tokio::time::Instant;

use crate::store::bans::Bans;
use crate::store::key_ring::random_seed;
use crate::store::redis::scripts;
use crate::store::redis::topology::node::RedisNode;
use crate::store::redis::topology::shared::SharedRedis;
use crate::store::redis::transport::fault::ServerFault;
use crate::words::clock::Timestamp;
use crate::words::signing::KeySeed;

/// How often this gateway asks for a new key. Until then it does not accept what another gateway signs with that key.
const ROUND: Duration = Duration::from_secs(60);

/// The pause after a call that failed.
const PACE: Duration = Duration::from_millis(250);

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The length of a stored key: 16 digits of microseconds, then the secret.
const RECORD: usize = MADE + 32;

const MADE: usize = 16;

/// Fetches the keys as soon as their server is up, again when it comes back, and every [`ROUND`]. Opens with them what bans
/// have kept sealed.
pub(in crate::store::redis) async fn follow(shared: Arc<SharedRedis>, bans: Arc<Bans>) {
    let name = scripts::keyring_name(&shared.settings.key_prefix);
    loop {
        let node = shared.wait_for_owner(&name).await;
        let begun = Instant::now();
        let fetched = time::timeout(PATIENCE, fetch(&shared, &node, &name)).await;
        bans.open_sealed(&shared.key_ring.load());
        shared.keys_requested.store(true, Ordering::Release);
        shared.notify();
        if matches!(fetched, Ok(Ok(()))) {
            drop(time::timeout(ROUND, shared.wait_for_other_owner(&name, &node)).await);
        } else {
            time::sleep_until(begun + PACE).await;
        }
    }
}

/// Fetches the keys once, if their server is up.
pub(super) async fn refresh(shared: &SharedRedis, bans: &Bans) {
    let name = scripts::keyring_name(&shared.settings.key_prefix);
    let Some(node) = shared.owner_of(&name) else { return };
    // If that fails, the keys that there are go on.
    drop(time::timeout(PATIENCE, fetch(shared, &node, &name)).await);
    bans.open_sealed(&shared.key_ring.load());
}

/// Uses a connection of its own, because this is not a decision and no request waits for it.
async fn fetch(shared: &SharedRedis, node: &RedisNode, name: &str) -> Result<(), ServerFault> {
    let connection = shared.connector.connect(&node.address).await?;
    // Redis sets the moment of the seed that it stores.
    let candidate = random_seed(Timestamp::EPOCH);
    let scripts::Invocation { script, command } = scripts::keyring(name, &candidate.secret, &shared.time);
    let answer = match connection.send(&command).await? {
        Value::ServerError(error) if error.code() == "NOSCRIPT" => {
            connection.load(&script.text).await?;
            connection.ask(&command).await?
        }
        Value::ServerError(error) => {
            if matches!(error.code(), "MOVED" | "ASK") {
                shared.topology.refresh.notify_one();
            }
            return Err(ServerFault::of_answer(&error));
        }
        answer => answer,
    };
    let Value::BulkString(kept) = answer else { return Err(ServerFault::nonsense()) };
    let seeds = read(&kept).ok_or_else(ServerFault::nonsense)?;
    shared.key_ring.share(&seeds, &pepper(shared));
    Ok(())
}

/// Mixed into the seeds: the password of the URL, if there is one, which a reader of the seeds does not know, and the prefix,
/// so that a signature under one prefix is not valid under another. A password in a file may change while gateways run.
fn pepper(shared: &SharedRedis) -> Vec<u8> {
    let password = shared.connector.login.password.as_deref().unwrap_or_default();
    [&(password.len() as u64).to_le_bytes()[..], password.as_bytes(), shared.settings.key_prefix.as_bytes()].concat()
}

/// Reads stored keys; `None`: these are not keys.
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
    fn keys_are_read_as_they_are_stored() {
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
