//! What the gateways on one Redis know of each other: small records that each writes every few seconds and any may read.
//!
//! They are written while somebody reads them, and for a minute after: a Redis at rest, or in a flood that nobody watches, gets
//! one short question of each gateway every four seconds.
//!
//! A gateway writes one record of a kind, or a few that are told apart by a number; each write replaces the one before.
//! A record outlives its gateway by the time that its [`RecordKind`] is kept, so that others still know it. Nothing of it is
//! in a request's way: a task of the process writes and reads over a connection of its own, and a failure opens no breaker.
//! In a cluster all records are in one slot.
//!
//! Records are encrypted under the key ring that all gateways share, so a reader of Redis learns no address and no name
//! from them. Until Redis has sent those keys, others cannot read what this gateway writes.
//!
//! ```ignore
//! const STATUS: RecordKind = RecordKind { name: "status", kept: Duration::from_secs(3600) };
//! let records = SharedRecords::of(&store, gateway_id).expect("the store is in Redis");
//! records.write(STATUS, 0, &bytes).await?;
//! for SharedRecord { gateway, age, content, .. } in records.read(STATUS).await? { .. }
//! ```

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::any_store::AnyStore;
use super::key_ring::LiveKeyRing;
use super::random::random_bytes;
use super::redis::RecordLink;
use super::redis::RecordsUnavailable;
use super::redis::StoredRecord;
use crate::clock::Clock;
use crate::clock::Timestamp;

/// Records of one meaning.
#[derive(Clone, Copy, Debug)]
pub struct RecordKind {
    /// A part of the keys in Redis.
    pub name: &'static str,
    /// For how long a record can be read after it was written.
    pub kept: Duration,
}

/// Writes the records of this gateway and reads those of all.
#[derive(Debug)]
pub struct SharedRecords {
    link: RecordLink,
    key_ring: Arc<LiveKeyRing>,
    gateway: Arc<str>,
    demand: Mutex<Demand>,
    clock: Clock,
}

/// Whether somebody reads the records.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    /// Until then somebody does. `None`: nobody is known to.
    lasts_until: Option<Timestamp>,
    /// When Redis was asked last.
    asked: Option<Timestamp>,
}

/// A record that a gateway has written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SharedRecord {
    /// Which gateway wrote it.
    pub gateway: String,
    /// Which of the gateway's records of this kind.
    pub part: u64,
    /// How long ago it was written, by the clock of Redis.
    pub age: Duration,
    pub content: Vec<u8>,
}

impl SharedRecords {
    /// `None`: the store is in this process, so there are no other gateways. `gateway` is the id of this one, without a
    /// slash.
    pub fn of(store: &AnyStore, gateway: Arc<str>) -> Option<Self> {
        let AnyStore::Shared(shared) = store else { return None };
        Some(Self {
            link: RecordLink::new(shared.shared()),
            key_ring: Arc::clone(shared.key_ring()),
            gateway,
            demand: Mutex::default(),
            clock: Clock::system(),
        })
    }

    /// The id of this gateway.
    pub fn gateway(&self) -> &Arc<str> {
        &self.gateway
    }

    /// Whether some gateway has read records lately: what nobody reads need not be written.
    pub async fn are_read(&self) -> bool {
        let now = self.clock.now();
        {
            let mut demand = self.demand.lock();
            if demand.lasts_until.is_some_and(|until| now < until) {
                return true;
            }
            if demand.asked.is_some_and(|asked| now < asked + DEMAND_ASKED_EVERY) {
                return false;
            }
            demand.asked = Some(now);
        }
        let is_read = matches!(self.link.get(READ.name, ANYBODY).await, Ok(Some(_)));
        if is_read {
            self.demand.lock().lasts_until = Some(now + READ.kept / 2);
        }
        is_read
    }

    /// Lets all gateways know that somebody reads.
    async fn tell_that_they_are_read(&self) -> Result<(), RecordsUnavailable> {
        self.link.put(READ.name, ANYBODY, b"", READ.kept).await?;
        self.demand.lock().lasts_until = Some(self.clock.now() + READ.kept);
        Ok(())
    }

    /// Writes a record of this gateway in place of the one with the same kind and part. Gateways with much to say should
    /// write several parts: at most [`MAX_RECORD`] bytes are taken.
    pub async fn write(&self, kind: RecordKind, part: u64, content: &[u8]) -> Result<(), RecordsUnavailable> {
        if content.len() > MAX_RECORD {
            return Err(RecordsUnavailable::Refused);
        }
        let name = format!("{}/{part}", self.gateway);
        let place = place(kind, &name);
        let sealed = self.key_ring.load().seal(PURPOSE, place.as_bytes(), &random_bytes(), content);
        self.link.write(kind.name, &name, &sealed, kind.kept).await
    }

    /// Keeps a record that any gateway finds by its name alone, which is not one of a gateway.
    pub async fn put(&self, kind: RecordKind, name: &str, content: &[u8]) -> Result<(), RecordsUnavailable> {
        let sealed = self.key_ring.load().seal(PURPOSE, place(kind, name).as_bytes(), &random_bytes(), content);
        self.link.put(kind.name, name, &sealed, kind.kept).await
    }

    /// The record of this name that a gateway has put. `None`: there is none, or it cannot be opened.
    pub async fn get(&self, kind: RecordKind, name: &str) -> Result<Option<Vec<u8>>, RecordsUnavailable> {
        self.tell_that_they_are_read().await?;
        let sealed = self.link.get(kind.name, name).await?;
        let ring = self.key_ring.load();
        Ok(sealed.and_then(|sealed| ring.open(PURPOSE, place(kind, name).as_bytes(), &sealed)))
    }

    /// Removes a record that was put.
    pub async fn remove(&self, kind: RecordKind, name: &str) -> Result<(), RecordsUnavailable> {
        self.link.remove(kind.name, name).await
    }

    /// The records of all gateways, this one's too. Those that cannot be opened are left out.
    pub async fn read(&self, kind: RecordKind) -> Result<Vec<SharedRecord>, RecordsUnavailable> {
        self.tell_that_they_are_read().await?;
        let ring = self.key_ring.load();
        let open = |StoredRecord { name, age, content }: StoredRecord| {
            let content = ring.open(PURPOSE, place(kind, &name).as_bytes(), &content)?;
            let (gateway, part) = name.rsplit_once('/')?;
            Some(SharedRecord { gateway: gateway.to_owned(), part: part.parse().ok()?, age, content })
        };
        Ok(self.link.read(kind.name).await?.into_iter().filter_map(open).collect())
    }
}

/// What a record is bound to: it cannot be passed off as another one.
fn place(kind: RecordKind, name: &str) -> String {
    format!("{}/{name}", kind.name)
}

const PURPOSE: &str = "records of gateways";

/// Is there while somebody reads the records of others.
const READ: RecordKind = RecordKind { name: "read", kept: Duration::from_secs(60) };
const ANYBODY: &str = "anybody";

/// A little less than two of the ticks at which gateways write.
const DEMAND_ASKED_EVERY: Duration = Duration::from_millis(3900);

/// In bytes.
pub const MAX_RECORD: usize = 256 * 1024;
