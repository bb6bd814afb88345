//! Messages between gateways about bans.

use super::ban::BanId;
use super::table::Bans;
use super::text::BanUpdate;
use super::version::BanChange;
use super::version::BanVersion;

/// Applies a message of the channel: `ban BEGUN CHANGES ID LEFT LENGTH STEP AGE HAND BLOB` or `unban BEGUN CHANGES ID`.
/// Any other message is ignored.
pub(in crate::store) fn apply_message(bans: &Bans, message: &[u8]) {
    let read = || {
        let text = std::str::from_utf8(message).ok()?;
        let words: Vec<&str> = text.splitn(10, ' ').collect();
        let version = BanVersion::read(&[(*words.get(1)?).to_owned(), (*words.get(2)?).to_owned()])?;
        let id: BanId = words.get(3)?.parse().ok()?;
        if words[0] == "unban" {
            return Some((version, BanChange::Lift(id)));
        }
        let update = BanUpdate::read(version, words.get(4..)?)?;
        Some((version, BanChange::Ban(update.record(id, bans.now())?.into())))
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

    use proptest::prelude::*;

    use super::*;
    use crate::clock::Clock;
    use crate::clock::ManualClock;
    use crate::clock::Timestamp;
    use crate::key::DisplayKey;
    use crate::key::KeyHash;
    use crate::store::bans::BanSubject;
    use crate::store::bans::text::blob;
    use crate::store::bans::text::read_stored;

    fn bans() -> Bans {
        Bans::new(Clock::Manual(ManualClock::at(Timestamp::from_micros(1_000_000_000))))
    }

    fn subject() -> BanSubject {
        let named = DisplayKey { masked: vec![("param.user".into(), "a***".into())], ..DisplayKey::default() };
        BanSubject::Key { key: KeyHash(7), limit: "login guesses".into(), named, client: None }
    }

    #[test]
    fn a_ban_of_one_gateway_holds_in_another() {
        let bans = bans();
        let id = subject().id();
        let blob = blob(&subject(), "three times \"wrong\"");
        apply_message(&bans, format!("ban 1 1 {id} 5000000 9000000 2 4000000 l {blob}").as_bytes());
        let found = bans.find(id).expect("it is known");
        assert_eq!((found.subject, &*found.reason, found.by_operator), (subject(), "three times \"wrong\"", false));
        assert_eq!(bans.left(KeyHash(7)), Some(Duration::from_secs(5)));
        for nonsense in ["ban", "ban 1 2", "unban 1 2 x", "ban 1 2 3 4", "unban"] {
            apply_message(&bans, nonsense.as_bytes());
        }
        apply_message(&bans, b"ban \xff");
        assert_eq!(bans.count(), 1);
        apply_message(&bans, format!("unban 1 2 {id}").as_bytes());
        assert_eq!(bans.count(), 0);
    }

    proptest! {
        #[test]
        fn any_message_can_be_applied(
            words in prop::collection::vec(
                prop_oneof![any::<u64>().prop_map(|number| number.to_string()), "[0-9a-f]{0,32}", "[ -~]{0,12}", Just(blob(&subject(), "why"))],
                0..10,
            ),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let bans = bans();
            for start in ["ban", "unban", "x"] {
                apply_message(&bans, format!("{start} {}", words.join(" ")).as_bytes());
                apply_message(&bans, &[start.as_bytes(), &noise].concat());
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
            let blob = blob(&subject(), "why");
            apply_message(&bans, format!("ban {begun:x} {changes} {id} {left} {length} {step} {age} l {blob}").as_bytes());
            apply_message(&bans, format!("ban {begun:x} {changes} {id} {left} {length} {step} {age} l {blob}").as_bytes());
            apply_message(&bans, format!("unban {begun:x} {} {id}", changes.wrapping_add(1)).as_bytes());
            let kept = read_stored(id, &format!("{left} {length} {step} {age} h {blob}"), theirs, bans.now());
            prop_assert!(kept.is_some_and(|record| record.ban.id == id && record.ban.by_operator));
        }
    }
}
