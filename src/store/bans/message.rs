//! Messages between gateways about bans.

use super::ban::BanId;
use super::table::Bans;
use super::text::BanUpdate;
use super::version::BanChange;
use super::version::BanVersion;
use crate::signing::KeyRing;

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
        let update = BanUpdate::read(version, words.get(4..)?)?;
        Some((version, BanChange::Ban(update.record(id, bans.now(), ring)?.into())))
    };
    if let Some((version, change)) = read() {
        bans.receive_change(version, &change);
    }
}

/// Whether a message of the channel is about bans.
pub(in crate::store) fn is_about_bans(message: &[u8]) -> bool {
    message.starts_with(b"ban ") || message.starts_with(b"unban ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ipnet::IpNet;
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Clock;
    use crate::clock::ManualClock;
    use crate::clock::Timestamp;
    use crate::key::DisplayKey;
    use crate::key::KeyHash;
    use crate::signing::KeySeed;
    use crate::store::bans::BanSubject;
    use crate::store::bans::text::blob;
    use crate::store::bans::text::read_stored;

    fn bans() -> Bans {
        Bans::new(Clock::Manual(ManualClock::at(Timestamp::from_micros(1_000_000_000))))
    }

    fn ring() -> KeyRing {
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
        let blob = blob(&subject(), "three times \"wrong\"", None, &ring());
        apply_message(&bans, format!("ban 1 1 {id} 5000000 9000000 2 4000000 l {blob}").as_bytes(), &ring());
        let found = bans.find(id).expect("it is known");
        assert_eq!((found.subject, &*found.reason, found.by_operator), (subject(), "three times \"wrong\"", false));
        assert_eq!(bans.left(KeyHash(7)), Some(Duration::from_secs(5)));
        for nonsense in ["ban", "ban 1 2", "unban 1 2 x", "ban 1 2 3 4", "unban"] {
            apply_message(&bans, nonsense.as_bytes(), &ring());
        }
        apply_message(&bans, b"ban \xff", &ring());
        assert_eq!(bans.count(), 1);
        let again = format!("ban 1 3 {id} 7000000 9000000 2 4000000 l {blob}");
        apply_message(&bans, format!("unban 1 2 {id}\n\nnonsense\n{again}").as_bytes(), &ring());
        assert_eq!((bans.count(), bans.left(KeyHash(7))), (1, Some(Duration::from_secs(7))));
        apply_message(&bans, format!("unban 1 4 {id}").as_bytes(), &ring());
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
        let sent = blob(&with(&[network]), "", None, &ring());
        assert!(!sent.contains("100.7"), "{sent}");
        let (one, stranger) = (bans(), bans());
        let tell = |bans: &Bans, changes: u8, id: BanId, blob: &str, ring: &KeyRing| {
            apply_message(bans, format!("ban 1 {changes} {id} 5000000 9000000 1 0 l {blob}").as_bytes(), ring);
        };
        tell(&one, 1, id, &sent, &ring());
        assert_eq!(shown(&one, id), [network]);
        // It names no other ban.
        tell(&one, 2, BanId(8), &sent, &ring());
        assert_eq!(shown(&one, BanId(8)), []);
        // A gateway without the key passes on what it cannot read, and reads it once it has the key.
        tell(&stranger, 1, id, &sent, &other_ring);
        stranger.open_sealed(&other_ring);
        assert_eq!(shown(&stranger, id), []);
        let kept = stranger.records().remove(0);
        let resent = blob(&kept.ban.subject, "", kept.sealed(), &other_ring);
        assert_eq!(resent, sent);
        stranger.open_sealed(&ring());
        assert_eq!(shown(&stranger, id), [network]);
        // A gateway of an earlier version tells no address, and clears none.
        let bare = blob(&with(&[]), "", None, &ring());
        assert!(!bare.contains("sealed"));
        tell(&one, 3, id, &bare, &ring());
        assert_eq!(shown(&one, id), [network]);
        let late = bans();
        tell(&late, 1, id, &bare, &ring());
        assert_eq!((shown(&late, id), late.find(id).and_then(|ban| ban.network())), (Vec::new(), None));
    }

    proptest! {
        #[test]
        fn any_message_can_be_applied(
            words in prop::collection::vec(
                prop_oneof![any::<u64>().prop_map(|number| number.to_string()), "[0-9a-f]{0,32}", "[ -~]{0,12}", Just(blob(&subject(), "why", None, &ring()))],
                0..10,
            ),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let bans = bans();
            for start in ["ban", "unban", "x"] {
                apply_message(&bans, format!("{start} {}", words.join(" ")).as_bytes(), &ring());
                apply_message(&bans, &[start.as_bytes(), &noise].concat(), &ring());
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
            let blob = blob(&subject(), "why", None, &ring());
            apply_message(&bans, format!("ban {begun:x} {changes} {id} {left} {length} {step} {age} l {blob}").as_bytes(), &ring());
            apply_message(&bans, format!("ban {begun:x} {changes} {id} {left} {length} {step} {age} l {blob}").as_bytes(), &ring());
            apply_message(&bans, format!("unban {begun:x} {} {id}", changes.wrapping_add(1)).as_bytes(), &ring());
            let kept = read_stored(id, &format!("{left} {length} {step} {age} h {blob}"), theirs, bans.now(), &ring());
            prop_assert!(kept.is_some_and(|record| record.ban.id == id && record.ban.by_operator));
        }
    }
}
