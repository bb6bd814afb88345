//! The records of this gateway and of all others.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::heard_questions::HeardQuestions;
use super::server_clock::ServerClock;
use super::silent_gateways::SilentGateways;
use super::written_fields::WrittenFields;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::store::any_store::AnyStore;
use crate::store::key_ring::LiveKeyRing;
use crate::store::random::random_bytes;
use crate::store::redis::RecordLink;
use crate::store::redis::RecordsUnavailable;

/// Writes the records of this gateway and reads those of all.
///
/// ```ignore
/// let records = SharedRecords::of(&store, gateway_id).expect("the store is in Redis");
/// let questions = records.questions_to_answer();
/// records.write(vec![Field { name: "status".into(), content }], &questions).await?;
/// for GatewayRecords { gateway, standing, contents, .. } in records.ask(&["status".into()], None).await? { .. }
/// ```
#[derive(Debug)]
pub struct SharedRecords {
    pub(super) link: RecordLink,
    key_ring: Arc<LiveKeyRing>,
    pub(super) gateway: Arc<str>,
    pub(super) written: Mutex<WrittenFields>,
    pub(super) is_over: AtomicBool,
    /// The last question that this gateway has asked, and when. Whoever asks next holds the lock.
    pub(super) last_question: Mutex<Option<(u64, Instant)>>,
    pub(super) silent: SilentGateways,
    clock: ServerClock,
}

impl SharedRecords {
    /// `None`: the store is in this process, so there are no other gateways. `gateway` is the id of this one.
    pub fn of(store: &AnyStore, gateway: Arc<str>) -> Option<Self> {
        let AnyStore::Shared(shared) = store else { return None };
        Some(Self {
            link: RecordLink::new(shared.shared()),
            key_ring: Arc::clone(shared.key_ring()),
            gateway,
            written: Mutex::default(),
            is_over: AtomicBool::new(false),
            last_question: Mutex::default(),
            silent: SilentGateways::default(),
            clock: ServerClock::new(Clock::system()),
        })
    }

    pub(super) fn questions(&self) -> &HeardQuestions {
        self.link.questions()
    }

    /// The time of Redis.
    pub(super) async fn now(&self) -> Result<Timestamp, RecordsUnavailable> {
        match self.clock.now() {
            Some(now) => Ok(now),
            None => self.ask_for_time().await,
        }
    }

    pub(super) async fn ask_for_time(&self) -> Result<Timestamp, RecordsUnavailable> {
        let now = self.link.time().await?;
        self.clock.set(now);
        Ok(now)
    }

    /// Names the key that encrypts now.
    pub(super) fn key(&self) -> [u8; 16] {
        self.key_ring.load().display_secret()
    }

    pub(super) fn seal(&self, field: &str, content: &[u8]) -> Vec<u8> {
        self.key_ring.load().seal(PURPOSE, place(&self.gateway, field).as_bytes(), &random_bytes(), content)
    }

    /// `None`: it cannot be opened.
    pub(super) fn open(&self, gateway: &str, field: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.key_ring.load().open(PURPOSE, place(gateway, field).as_bytes(), sealed)
    }
}

/// What a content is bound to: it cannot be passed off as another one.
fn place(gateway: &str, field: &str) -> String {
    format!("{gateway}/{field}")
}

const PURPOSE: &str = "records of gateways";
