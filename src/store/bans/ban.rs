//! A ban, its subject and its id.

use std::fmt;
use std::net::IpAddr;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::rules::key::{DisplayKey, Key, KeyHash, KeyHasher};
use crate::store::bans::codec::SealedNetworks;
use crate::words::clock::Timestamp;
use crate::words::signing::KeyRing;

/// How long the message about a ban takes at most to reach a gateway.
const LONGEST_DELIVERY: Duration = Duration::from_secs(1);

/// The id of a ban, derived from its subject, so that every gateway uses the same id. Printed as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct BanId(pub u128);

/// A ban that lasts or has ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ban {
    pub id: BanId,
    pub subject: BanSubject,
    pub since: Timestamp,
    pub until: Timestamp,
    pub reason: Arc<str>,
    /// An operator set it, not a limit.
    pub by_operator: bool,
}

/// What is banned.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BanSubject {
    Address(IpNet),
    /// A key of a limit. `named` and `client` are for logs and operators; `client` sent the request that began the ban,
    /// where that is known.
    Key {
        key: KeyHash,
        limit: Arc<str>,
        named: DisplayKey,
        client: Option<IpAddr>,
    },
}

/// The last ban of a subject, and where the subject stands on the ladder of its limit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::store) struct BanRecord {
    pub ban: Ban,
    /// The addresses in the key, where this process could not decrypt them.
    pub(super) sealed: Option<SealedNetworks>,
    /// How many steps of the ladder were taken; 0: only operators have banned it.
    pub step: u32,
    /// How long the last ban lasts or lasted.
    pub length: Duration,
}

impl BanId {
    pub fn of_key(key: KeyHash) -> Self {
        Self::named("keys", &key.0.to_le_bytes())
    }

    pub fn of_address(network: IpNet) -> Self {
        Self::named("addresses", network.trunc().to_string().as_bytes())
    }

    /// Hashed again, so that the id does not reveal the hash under which the key is counted.
    fn named(space: &str, name: &[u8]) -> Self {
        let mut key = Key::default();
        key.push(name);
        Self(KeyHasher::shared("bans").hash(space, &key).0)
    }
}

impl BanSubject {
    pub fn id(&self) -> BanId {
        match self {
            Self::Address(network) => BanId::of_address(*network),
            Self::Key { key, .. } => BanId::of_key(*key),
        }
    }

    /// The same, of whose key another process has told these networks.
    #[must_use]
    pub(super) fn with_networks(self, networks: Vec<(usize, IpNet)>) -> Self {
        match self {
            Self::Key { key, limit, named, client } => {
                Self::Key { key, limit, named: named.with_networks(networks), client }
            }
            Self::Address(network) => Self::Address(network),
        }
    }

    /// The addresses in the key, encrypted for this ban.
    pub(super) fn seal(&self, ring: &KeyRing) -> Option<SealedNetworks> {
        match self {
            Self::Key { named, .. } => SealedNetworks::seal(&named.networks, self.id().0, ring),
            Self::Address(_) => None,
        }
    }

    /// How much it shows of its key: whether all of it, and whether the addresses in it.
    fn clarity(&self) -> (bool, bool) {
        match self {
            Self::Key { named, .. } => (named.clear.is_some(), !named.networks.is_empty()),
            Self::Address(_) => (true, true),
        }
    }
}

impl Ban {
    /// How long it still lasts; zero when it is over.
    pub fn left(&self, now: Timestamp) -> Duration {
        self.until.since(now)
    }

    /// Whether this process has seen the banned key itself.
    pub fn is_first_hand(&self) -> bool {
        match &self.subject {
            BanSubject::Key { named, .. } => named.clear.is_some(),
            BanSubject::Address(_) => false,
        }
    }

    /// The banned network, where it is known unhashed.
    pub fn network(&self) -> Option<IpNet> {
        match &self.subject {
            BanSubject::Address(network) => Some(*network),
            BanSubject::Key { named, .. } => named.address(),
        }
    }
}

impl BanRecord {
    /// When it can be removed: its step no longer matters then. The same moment as `Ladder::expires` of its rung.
    pub(in crate::store) fn expires(&self) -> Timestamp {
        self.ban.until + self.length.saturating_mul(self.step)
    }

    /// A ban whose key hides nothing from this process.
    pub(in crate::store) fn new(ban: Ban, step: u32, length: Duration) -> Self {
        Self { ban, sealed: None, step, length }
    }

    /// Decrypts the addresses in the key, if this process can.
    pub(in crate::store) fn open(&mut self, ring: &KeyRing) {
        let opened = self.sealed.as_ref().and_then(|sealed| sealed.open(self.ban.id.0, ring));
        if let Some(networks) = opened {
            self.ban.subject = self.ban.subject.clone().with_networks(networks);
            self.sealed = None;
        }
    }

    /// The addresses in the key, where this process could not decrypt them.
    pub(in crate::store) fn sealed(&self) -> Option<&SealedNetworks> {
        self.sealed.as_ref()
    }

    /// Takes the subject of the same ban where that shows as much of the key, and this one not all.
    pub(in crate::store) fn describe(&mut self, known: &BanSubject) {
        let shown = self.ban.subject.clarity();
        let (is_all, _) = shown;
        if !is_all && known.clarity() >= shown {
            self.ban.subject = known.clone();
        }
        if self.ban.subject.clarity() > (false, false) {
            self.sealed = None;
        }
    }

    /// Keeps from the `known` record what this process knows better: what the key shows, and, when both describe
    /// the same ban, its begin and end, because the delivery of the message has shifted them a little.
    pub(super) fn merge_known(&mut self, known: &Self) {
        self.describe(&known.ban.subject);
        if self.ban.subject.clarity() == (false, false) && self.sealed.is_none() {
            self.sealed.clone_from(&known.sealed);
        }
        let facts =
            |record: &Self| (record.step, record.length, record.ban.by_operator, Arc::clone(&record.ban.reason));
        let difference = self.ban.until.since(known.ban.until).max(known.ban.until.since(self.ban.until));
        if facts(self) == facts(known) && difference < LONGEST_DELIVERY {
            (self.ban.since, self.ban.until) = (known.ban.since, known.ban.until);
        }
    }
}

impl fmt::Display for BanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for BanId {
    type Err = InvalidBanId;

    fn from_str(text: &str) -> Result<Self, InvalidBanId> {
        let is_plain = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_plain { Ok(Self(u128::from_str_radix(text, 16)?)) } else { Err(InvalidBanId) }
    }
}

/// The text is not the id of a ban.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a ban id has 32 hexadecimal digits")]
pub struct InvalidBanId;

impl From<ParseIntError> for InvalidBanId {
    fn from(_: ParseIntError) -> Self {
        Self
    }
}

// The observer of bans that are set or lifted.

/// Is called for bans that are set or lifted, for the audit trail, the live stream and those who ask later.
///
/// Called while a request waits, so it must not block.
pub trait BanObserver: Send + Sync + fmt::Debug {
    /// The ban begins now.
    fn banned(&self, ban: &Ban);

    /// An operator has lifted the ban before its end.
    fn lifted(&self, ban: &Ban);

    /// A message in Redis says that the ban began. Another gateway has set it, or this process and its caller does not know
    /// yet.
    fn ban_announced(&self, ban: &Ban);

    /// A message in Redis says that the ban was lifted, by another gateway or by this process.
    fn lift_announced(&self, ban: &Ban);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_printed_and_read_back() {
        let id = BanId::of_key(KeyHash(7));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(BanId(1).to_string(), "00000000000000000000000000000001");
        for wrong in ["", "1", "+0000000000000000000000000000001", "0000000000000000000000000000000g"] {
            assert_eq!(wrong.parse::<BanId>(), Err(InvalidBanId), "{wrong}");
        }
    }

    #[test]
    fn a_network_has_one_id_however_it_is_written() {
        let of = |text: &str| BanId::of_address(text.parse().expect("a network"));
        assert_eq!(of("198.51.100.7/24"), of("198.51.100.0/24"));
        assert_ne!(of("198.51.100.0/24"), of("198.51.100.0/25"));
    }
}
