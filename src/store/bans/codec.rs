//! Bans as text, as Redis stores and sends them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::rules::key::{DisplayKey, KeyHash};
use crate::store::bans::ban::{Ban, BanId, BanRecord, BanSubject};
use crate::store::bans::sync::{BanChange, BanVersion};
use crate::store::bans::table::Bans;
use crate::store::key_ring::random_bytes;
use crate::words::base64;
use crate::words::clock::Timestamp;
use crate::words::signing::KeyRing;

/// A ban as the script sends it.
#[derive(Clone, Debug)]
pub(in crate::store) struct BanUpdate {
    pub version: BanVersion,
    ban: SavedBan,
}

impl BanUpdate {
    /// Reads `left length step age hand blob`; the blob is the last word. It has spans instead of moments, because clocks
    /// differ: they count from `now` of the clock of this process.
    pub(in crate::store) fn read(version: BanVersion, words: &[impl AsRef<str>], now: Timestamp) -> Option<Self> {
        let [left, length, step, age, hand, blob] = words else { return None };
        let micros = |text: &str| text.parse::<u64>().ok();
        let until = now + Duration::from_micros(micros(left.as_ref())?);
        let ban = SavedBan {
            blob: blob.as_ref().to_owned(),
            since: now.as_micros().saturating_sub(micros(age.as_ref())?),
            until: until.as_micros(),
            by_operator: hand.as_ref() == OPERATOR,
            step: step.as_ref().parse().ok()?,
            length: micros(length.as_ref())?,
        };
        Some(Self { version, ban })
    }

    pub(in crate::store) fn record(&self, id: BanId, ring: &KeyRing) -> Option<BanRecord> {
        self.ban.record(KeyNetworks::Sealed(id, ring))
    }
}

/// Reads what Redis stores: `until length step since hand blob`. The moments are those of a clock that shows `theirs`
/// when the clock of this process shows `ours`.
pub(in crate::store) fn read_stored(
    id: BanId,
    text: &str,
    theirs: u64,
    ours: Timestamp,
    ring: &KeyRing,
) -> Option<BanRecord> {
    let mut words = text.splitn(6, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (until, length, step, since) = (number()?, number()?, number()?, number()?);
    let (hand, blob) = (words.next()?, words.next()?);
    let here = |moment: u64| {
        let shifted = i128::from(moment) - i128::from(theirs) + i128::from(ours.as_micros());
        u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
    };
    let (since, until, step) = (here(since), here(until), u32::try_from(step).ok()?);
    let ban = SavedBan { blob: blob.to_owned(), since, until, by_operator: hand == OPERATOR, step, length };
    ban.record(KeyNetworks::Sealed(id, ring))
}

/// The word of a ban that an operator has set.
const OPERATOR: &str = "h";

/// Writes the subject and the reason of a ban as Redis keeps them. `sealed`: what this process could not open of it.
pub(in crate::store) fn blob(
    subject: &BanSubject,
    reason: &str,
    sealed: Option<&SealedNetworks>,
    ring: &KeyRing,
) -> String {
    let sealed = subject.seal(ring).or_else(|| sealed.cloned());
    BanBlob::with_sealed(subject, reason, sealed).to_json()
}

pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

// The part of a ban that scripts do not read, as JSON.

/// The subject and the reason of a ban. Of the values of a key it has what logs show as well, and the addresses of clients.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct BanBlob {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default)]
    limit: String,
    #[serde(default)]
    parts: Vec<(String, String)>,
    /// The networks of clients in the key, each with the place of its part: only in what stays with this gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    networks: Vec<(usize, String)>,
    /// The same networks, encrypted: in what other gateways read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
    reason: String,
}

impl BanBlob {
    /// Without the addresses in a key.
    fn of(subject: &BanSubject, reason: &str) -> Self {
        let reason = reason.to_owned();
        match subject {
            BanSubject::Address(network) => Self { address: Some(network.to_string()), reason, ..Self::default() },
            BanSubject::Key { key, limit, named, .. } => Self {
                key: Some(format!("{:032x}", key.0)),
                limit: limit.to_string(),
                parts: named.masked.clone(),
                reason,
                ..Self::default()
            },
        }
    }

    /// With the addresses in clear.
    pub(super) fn with_networks(subject: &BanSubject, reason: &str) -> Self {
        let mut blob = Self::of(subject, reason);
        if let BanSubject::Key { named, .. } = subject {
            blob.networks = named.networks.iter().map(|(place, network)| (*place, network.to_string())).collect();
        }
        blob
    }

    /// With the addresses encrypted.
    pub(super) fn with_sealed(subject: &BanSubject, reason: &str, sealed: Option<SealedNetworks>) -> Self {
        Self { sealed: sealed.map(SealedNetworks::into_text), ..Self::of(subject, reason) }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts are JSON")
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The addresses that it has in clear.
    pub(super) fn networks(&self) -> Vec<(usize, IpNet)> {
        let networks = self.networks.iter().filter_map(|(place, network)| Some((*place, network.parse().ok()?)));
        networks.collect()
    }

    /// The addresses that it has encrypted.
    pub(super) fn sealed(&mut self) -> Option<SealedNetworks> {
        SealedNetworks::read(self.sealed.take()?)
    }

    /// The subject, without addresses in its key, and the reason.
    pub(super) fn subject(self) -> Option<(BanSubject, Arc<str>)> {
        let Self { address, key, limit, parts, reason, .. } = self;
        let subject = match (address, key) {
            (Some(network), None) => BanSubject::Address(network.parse::<IpNet>().ok()?.trunc()),
            (None, Some(key)) => BanSubject::Key {
                key: KeyHash(u128::from_str_radix(&key, 16).ok()?),
                limit: limit.into(),
                named: DisplayKey { masked: parts, ..DisplayKey::default() },
                client: None,
            },
            _ => return None,
        };
        Some((subject, reason.into()))
    }
}

// Messages between gateways about bans.

/// Applies a message of the channel, which is a line for each change: `ban BEGUN CHANGES ID LEFT LENGTH STEP AGE HAND BLOB` or
/// `unban BEGUN CHANGES ID`. Any other line is ignored.
pub(in crate::store) fn apply_message(bans: &Bans, message: &[u8], ring: &KeyRing) {
    message.split(|byte| *byte == b'\n').for_each(|line| apply_line(bans, line, ring));
}

fn apply_line(bans: &Bans, line: &[u8], ring: &KeyRing) {
    let read = || {
        let text = std::str::from_utf8(line).ok()?;
        let words: Vec<&str> = text.splitn(10, ' ').collect();
        let version = BanVersion::read(&[(*words.get(1)?).to_owned(), (*words.get(2)?).to_owned()])?;
        let id: BanId = words.get(3)?.parse().ok()?;
        if words[0] == "unban" {
            return Some((version, BanChange::Lift(id)));
        }
        let update = BanUpdate::read(version, words.get(4..)?, bans.now())?;
        Some((version, BanChange::Ban(update.record(id, ring)?.into())))
    };
    if let Some((version, change)) = read() {
        bans.receive_change(version, &change);
    }
}

/// Whether a message of the channel is about bans.
pub(in crate::store) fn is_about_bans(message: &[u8]) -> bool {
    message.starts_with(b"ban ") || message.starts_with(b"unban ")
}

// The addresses of clients in the key of a ban, encrypted under the keys that gateways share.

/// No gateway writes a longer text: a network takes some 20 bytes.
const LONGEST: usize = 1024;

const PURPOSE: &str = "addresses in bans";

/// The encrypted networks of a key, as text.
///
/// They open only for the ban that they were sealed for. The length tells of IPv4 and IPv6, as the mask of the key does, and
/// nothing else.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::store) struct SealedNetworks(Arc<str>);

impl SealedNetworks {
    /// `networks` with the places of their parts in the key; `ban` is the id of the ban. `None`: there are no networks.
    pub(super) fn seal(networks: &[(usize, IpNet)], ban: u128, ring: &KeyRing) -> Option<Self> {
        if networks.is_empty() {
            return None;
        }
        let networks: Vec<(usize, IpAddr, u8)> =
            networks.iter().map(|(place, network)| (*place, network.network(), network.prefix_len())).collect();
        let text = postcard::to_stdvec(&networks).expect("memory has room for a few bytes");
        Self::read(base64::encode(&ring.seal(PURPOSE, &ban.to_be_bytes(), &random_bytes(), &text)))
    }

    /// `None`: it was changed, it belongs to another ban, or its key is not on this ring.
    pub(super) fn open(&self, ban: u128, ring: &KeyRing) -> Option<Vec<(usize, IpNet)>> {
        let text = ring.open(PURPOSE, &ban.to_be_bytes(), &base64::decode(self.0.as_bytes()))?;
        let networks: Vec<(usize, IpAddr, u8)> = postcard::from_bytes(&text).ok()?;
        let network = |(place, address, prefix)| Some((place, IpNet::new(address, prefix).ok()?));
        networks.into_iter().map(network).collect()
    }

    pub(super) fn read(text: String) -> Option<Self> {
        (text.len() <= LONGEST).then(|| Self(text.into()))
    }

    pub(super) fn into_text(self) -> String {
        self.0.as_ref().to_owned()
    }
}

// Bans as one process of a gateway saves them for another, and what is read of every form of them.

/// A ban and its step on the ladder, in a snapshot or on the way to the process that takes over. The addresses in its key are
/// in clear, because it stays with this gateway. Moments and spans are microseconds.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::store) struct SavedBan {
    blob: String,
    since: u64,
    until: u64,
    by_operator: bool,
    step: u32,
    length: u64,
}

/// How a blob has the addresses in the key of its ban.
#[derive(Clone, Copy)]
enum KeyNetworks<'r> {
    /// In clear, in what stays with this gateway.
    Clear,
    /// Encrypted for the ban with this id, in what other gateways read.
    Sealed(BanId, &'r KeyRing),
}

impl SavedBan {
    pub(in crate::store) fn of(record: &BanRecord) -> Self {
        let BanRecord { ban, step, length, .. } = record;
        Self {
            blob: BanBlob::with_networks(&ban.subject, &ban.reason).to_json(),
            since: ban.since.as_micros(),
            until: ban.until.as_micros(),
            by_operator: ban.by_operator,
            step: *step,
            length: micros(*length),
        }
    }

    /// The same by a clock that is ahead by so many microseconds.
    #[must_use]
    pub(in crate::store) fn shifted(self, micros: i64) -> Self {
        let later = |moment: u64| moment.saturating_add_signed(micros);
        Self { since: later(self.since), until: later(self.until), ..self }
    }

    /// When it began.
    pub(in crate::store) fn since(&self) -> Timestamp {
        Timestamp::from_micros(self.since)
    }

    /// Where it still lasts: as long as was left at the last moment that is known, and never longer than the whole ban. The clock
    /// is `behind` that moment.
    pub(in crate::store) fn correct(&mut self, now: Timestamp, behind: Duration) {
        let (whole, now) = (self.until.saturating_sub(self.since), now.as_micros());
        if self.until > now {
            let left = (self.until - now).saturating_sub(micros(behind)).min(whole);
            self.until = now + left;
            self.since = self.since.min(now);
        }
    }

    /// `None`: it is not a ban.
    pub(in crate::store) fn read(&self) -> Option<BanRecord> {
        self.record(KeyNetworks::Clear)
    }

    /// The ban and its step, whichever form they were read from.
    fn record(&self, key: KeyNetworks<'_>) -> Option<BanRecord> {
        let mut blob = BanBlob::read(&self.blob)?;
        let (networks, sealed) = (blob.networks(), blob.sealed());
        let (subject, reason) = blob.subject()?;
        let (id, subject, sealed) = match key {
            KeyNetworks::Clear => (subject.id(), subject.with_networks(networks), None),
            KeyNetworks::Sealed(id, _) => (id, subject, sealed),
        };
        let (since, until) = (Timestamp::from_micros(self.since), Timestamp::from_micros(self.until));
        let ban = Ban { id, subject, since, until, reason, by_operator: self.by_operator };
        let mut record = BanRecord { sealed, ..BanRecord::new(ban, self.step, Duration::from_micros(self.length)) };
        if let KeyNetworks::Sealed(_, ring) = key {
            record.open(ring);
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ipnet::IpNet;
    use proptest::prelude::*;

    use super::{blob, read_stored, *};
    use crate::rules::key::{DisplayKey, KeyHash};
    use crate::store::bans::BanSubject;
    use crate::words::clock::{Clock, ManualClock, Timestamp};
    use crate::words::signing::KeySeed;

    fn ring(secret: u8) -> KeyRing {
        KeyRing::new(KeySeed { made: Timestamp::EPOCH, secret: [secret; 32] })
    }

    fn networks(all: &[(usize, &str)]) -> Vec<(usize, IpNet)> {
        all.iter().map(|(place, text)| (*place, text.parse().expect("a network"))).collect()
    }

    #[test]
    fn only_a_gateway_with_the_key_opens_it_and_only_for_this_ban() {
        for all in [
            networks(&[(0, "198.51.100.7/32")]),
            networks(&[(1, "198.51.100.0/24"), (2, "198.51.100.7/32")]),
            networks(&[(0, "2001:db8:1:2::/64")]),
        ] {
            let sealed = SealedNetworks::seal(&all, 7, &ring(1)).expect("there is one");
            assert_eq!(sealed.open(7, &ring(1)), Some(all));
            assert_eq!((sealed.open(8, &ring(1)), sealed.open(7, &ring(2))), (None, None));
            let bytes = base64::decode(sealed.0.as_bytes());
            assert!(!bytes.windows(3).any(|three| [&[198, 51, 100][..], b"198", &[0x0d, 0xb8, 0]].contains(&three)));
        }
        assert_eq!(SealedNetworks::seal(&[], 7, &ring(1)), None);
    }

    #[test]
    fn the_length_says_nothing_of_the_address() {
        let length = |text| SealedNetworks::seal(&networks(&[(0, text)]), 7, &ring(1)).expect("one").0.len();
        assert_eq!(length("10.0.0.1/32"), length("198.51.100.177/32"));
        assert_eq!(length("2001:db8::/64"), length("2001:db8:1234:5678::/64"));
    }

    #[test]
    fn what_no_gateway_has_sealed_is_not_opened() {
        assert_eq!(SealedNetworks::read("A".repeat(LONGEST + 1)), None);
        for text in ["", "A", "=", "not base64 \u{fffd}", &"A".repeat(LONGEST)] {
            assert_eq!(SealedNetworks::read(text.to_owned()).and_then(|sealed| sealed.open(7, &ring(1))), None);
        }
    }

    fn bans() -> Bans {
        Bans::new(Clock::Manual(ManualClock::at(Timestamp::from_micros(1_000_000_000))))
    }

    fn ring_codec() -> KeyRing {
        KeyRing::new(KeySeed { made: Timestamp::EPOCH, secret: [1; 32] })
    }

    fn subject() -> BanSubject {
        let named = DisplayKey { masked: vec![("param.user".into(), "a***".into())], ..DisplayKey::default() };
        BanSubject::Key { key: KeyHash(7), limit: "login guesses".into(), named, client: None }
    }

    #[test]
    fn a_ban_of_one_gateway_holds_in_another() {
        let bans = bans();
        let id = subject().id();
        let blob = blob(&subject(), "three times \"wrong\"", None, &ring_codec());
        apply_message(&bans, format!("ban 1 1 {id} 5000000 9000000 2 4000000 l {blob}").as_bytes(), &ring_codec());
        let found = bans.find(id).expect("it is known");
        assert_eq!((found.subject, &*found.reason, found.by_operator), (subject(), "three times \"wrong\"", false));
        assert_eq!(bans.left(KeyHash(7)), Some(Duration::from_secs(5)));
        for nonsense in ["ban", "ban 1 2", "unban 1 2 x", "ban 1 2 3 4", "unban"] {
            apply_message(&bans, nonsense.as_bytes(), &ring_codec());
        }
        apply_message(&bans, b"ban \xff", &ring_codec());
        assert_eq!(bans.count(), 1);
        let again = format!("ban 1 3 {id} 7000000 9000000 2 4000000 l {blob}");
        apply_message(&bans, format!("unban 1 2 {id}\n\nnonsense\n{again}").as_bytes(), &ring_codec());
        assert_eq!((bans.count(), bans.left(KeyHash(7))), (1, Some(Duration::from_secs(7))));
        apply_message(&bans, format!("unban 1 4 {id}").as_bytes(), &ring_codec());
        assert_eq!(bans.count(), 0);
    }

    #[test]
    fn the_address_in_a_key_is_known_to_gateways_with_the_same_keys() {
        let network = (0, "198.51.100.7/32".parse().expect("a network"));
        let masked = || vec![("client_ip".into(), "198.51.*.*".into()), ("param.user".into(), "a***".into())];
        let with = |networks: &[(usize, IpNet)]| {
            let named = DisplayKey { masked: masked(), networks: networks.to_vec(), clear: None };
            BanSubject::Key { key: KeyHash(7), limit: "guesses".into(), named, client: None }
        };
        let shown = |bans: &Bans, id: BanId| match bans.find(id).expect("it lasts").subject {
            BanSubject::Key { named, .. } => named.networks,
            BanSubject::Address(_) => panic!("a key is banned"),
        };
        let other_ring = KeyRing::new(KeySeed { made: Timestamp::EPOCH, secret: [2; 32] });
        let id = with(&[]).id();
        let sent = blob(&with(&[network]), "", None, &ring_codec());
        assert!(!sent.contains("100.7"), "{sent}");
        let (one, stranger) = (bans(), bans());
        let tell = |bans: &Bans, changes: u8, id: BanId, blob: &str, ring: &KeyRing| {
            apply_message(bans, format!("ban 1 {changes} {id} 5000000 9000000 1 0 l {blob}").as_bytes(), ring);
        };
        tell(&one, 1, id, &sent, &ring_codec());
        assert_eq!(shown(&one, id), [network]);
        // It names no other ban.
        tell(&one, 2, BanId(8), &sent, &ring_codec());
        assert_eq!(shown(&one, BanId(8)), []);
        // A gateway without the key passes on what it cannot read, and reads it once it has the key.
        tell(&stranger, 1, id, &sent, &other_ring);
        stranger.open_sealed(&other_ring);
        assert_eq!(shown(&stranger, id), []);
        let kept = stranger.records().remove(0);
        let resent = blob(&kept.ban.subject, "", kept.sealed(), &other_ring);
        assert_eq!(resent, sent);
        stranger.open_sealed(&ring_codec());
        assert_eq!(shown(&stranger, id), [network]);
        // A gateway of an earlier version tells no address, and clears none.
        let bare = blob(&with(&[]), "", None, &ring_codec());
        assert!(!bare.contains("sealed"));
        tell(&one, 3, id, &bare, &ring_codec());
        assert_eq!(shown(&one, id), [network]);
        let late = bans();
        tell(&late, 1, id, &bare, &ring_codec());
        assert_eq!((shown(&late, id), late.find(id).and_then(|ban| ban.network())), (Vec::new(), None));
    }

    proptest! {
        #[test]
        fn any_message_can_be_applied(
            words in prop::collection::vec(
                prop_oneof![any::<u64>().prop_map(|number| number.to_string()), "[0-9a-f]{0,32}", "[ -~]{0,12}", Just(blob(&subject(), "why", None, &ring_codec()))],
                0..10,
            ),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let bans = bans();
            for start in ["ban", "unban", "x"] {
                apply_message(&bans, format!("{start} {}", words.join(" ")).as_bytes(), &ring_codec());
                apply_message(&bans, &[start.as_bytes(), &noise].concat(), &ring_codec());
            }
        }

        #[test]
        fn any_numbers_make_a_ban_that_can_be_kept(
            begun in any::<u64>(),
            changes in prop_oneof![any::<u64>(), Just(u64::MAX)],
            spans in prop::array::uniform3(any::<u64>()),
            step in any::<u32>(),
            theirs in any::<u64>(),
        ) {
            let bans = bans();
            let ([left, length, age], id) = (spans, subject().id());
            let blob = blob(&subject(), "why", None, &ring_codec());
            apply_message(&bans, format!("ban {begun:x} {changes} {id} {left} {length} {step} {age} l {blob}").as_bytes(), &ring_codec());
            apply_message(&bans, format!("ban {begun:x} {changes} {id} {left} {length} {step} {age} l {blob}").as_bytes(), &ring_codec());
            apply_message(&bans, format!("unban {begun:x} {} {id}", changes.wrapping_add(1)).as_bytes(), &ring_codec());
            let kept = read_stored(id, &format!("{left} {length} {step} {age} h {blob}"), theirs, bans.now(), &ring_codec());
            prop_assert!(kept.is_some_and(|record| record.ban.id == id && record.ban.by_operator));
        }
    }
}
