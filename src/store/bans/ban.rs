//! What a ban is, and what it is called.

use std::fmt;
use std::net::IpAddr;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::key::DisplayKey;
use crate::key::Key;
use crate::key::KeyHash;
use crate::key::KeyHasher;

/// Which ban: by what is banned, so that every gateway calls it the same. Printed as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct BanId(pub u128);

/// A ban.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ban {
    pub id: BanId,
    pub subject: BanSubject,
    pub since: Timestamp,
    pub until: Timestamp,
    pub reason: Arc<str>,
    /// By a person, not by a limit.
    pub by_operator: bool,
}

/// What is banned.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BanSubject {
    Address(IpNet),
    /// A key of a limit. What it is called is for people, and so is who asked when it began, where that is known.
    Key {
        key: KeyHash,
        limit: Arc<str>,
        named: DisplayKey,
        client: Option<IpAddr>,
    },
}

/// What is remembered of the bans of one subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::store) struct Record {
    pub ban: Ban,
    /// How many steps of the ladder of its limit were taken; 0: none, it was banned by hand alone.
    pub step: u32,
    /// How long the last ban is, or was.
    pub length: Duration,
}

/// How long it takes at most until a gateway hears of a ban.
const ON_THE_WAY: Duration = Duration::from_secs(1);

impl BanId {
    pub fn of_key(key: KeyHash) -> Self {
        Self::named("keys", &key.0.to_le_bytes())
    }

    pub fn of_address(network: IpNet) -> Self {
        Self::named("addresses", network.trunc().to_string().as_bytes())
    }

    /// It tells nothing of the hash that counters are kept under.
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
}

impl Ban {
    /// How much of it is left; nothing of one that is over.
    pub fn left(&self, now: Timestamp) -> Duration {
        self.until.since(now)
    }

    /// The network it is about, where that is known in clear.
    pub fn network(&self) -> Option<IpNet> {
        match &self.subject {
            BanSubject::Address(network) => Some(*network),
            BanSubject::Key { named, .. } => named.address,
        }
    }
}

impl Record {
    /// Until when it has any say: as `Ladder::expires` of its rung.
    pub(in crate::store) fn expires(&self) -> Timestamp {
        self.ban.until + self.length.saturating_mul(self.step)
    }

    /// Takes from what was known before what is known better: what is shown of the key; and when the ban began and ends,
    /// if it is the same ban, and the news of it took a moment.
    pub(super) fn learn(&mut self, known: &Self) {
        if let (BanSubject::Key { named, .. }, BanSubject::Key { .. }) = (&self.ban.subject, &known.ban.subject)
            && named.clear.is_none()
        {
            self.ban.subject = known.ban.subject.clone();
        }
        let what = |record: &Self| (record.step, record.length, record.ban.by_operator, Arc::clone(&record.ban.reason));
        let apart = self.ban.until.since(known.ban.until).max(known.ban.until.since(self.ban.until));
        if what(self) == what(known) && apart < ON_THE_WAY {
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
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let is_plain = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_plain { Ok(Self(u128::from_str_radix(text, 16)?)) } else { Err(InvalidId) }
    }
}

/// It is no name of a ban.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an id of a ban has 32 hexadecimal digits")]
pub struct InvalidId;

impl From<ParseIntError> for InvalidId {
    fn from(_: ParseIntError) -> Self {
        Self
    }
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
            assert_eq!(wrong.parse::<BanId>(), Err(InvalidId), "{wrong}");
        }
    }

    #[test]
    fn a_network_has_one_id_however_it_is_written() {
        let of = |text: &str| BanId::of_address(text.parse().expect("a network"));
        assert_eq!(of("198.51.100.7/24"), of("198.51.100.0/24"));
        assert_ne!(of("198.51.100.0/24"), of("198.51.100.0/25"));
    }
}
