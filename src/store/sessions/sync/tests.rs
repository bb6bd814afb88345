use std::time::Duration;

use futures_util::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn now() -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000)
}

fn sessions() -> Sessions {
    let sessions = Sessions::new(100, now());
    sessions.share();
    sessions
}

fn version(changes: u64) -> SessionVersion {
    SessionVersion { begun: 1, changes, stamp: 1000 * changes }
}

fn learned(session: u128, account: u128) -> SessionRecord {
    let (session, account) = (KeyHash(session), KeyHash(account));
    SessionRecord::Learned { session, account, keep: HOUR, age: Duration::ZERO }
}

fn change(changes: u64, record: SessionRecord) -> SessionMessage {
    SessionMessage { version: version(changes), is_change: true, records: vec![record] }
}

fn page(changes: u64, records: Vec<SessionRecord>) -> SessionPage {
    SessionPage { version: version(changes), records }
}

fn account(sessions: &Sessions, session: u128) -> Option<u128> {
    sessions.account(KeyHash(session), now()).map(|account| account.0)
}

/// Whether a sync is requested.
fn is_due(sessions: &Sessions) -> bool {
    sessions.sync_requested().now_or_never().is_some()
}

#[test]
fn an_old_change_is_ignored_and_a_missed_one_requests_a_sync() {
    let sessions = sessions();
    sessions.end_load(Some(version(6)), false);
    sessions.receive(change(5, learned(1, 7)), now());
    assert_eq!((account(&sessions, 1), sessions.version()), (None, Some(version(6))));
    sessions.receive(change(7, learned(1, 7)), now());
    assert_eq!((account(&sessions, 1), sessions.version()), (Some(7), Some(version(7))));
    assert!(!is_due(&sessions));
    sessions.receive(change(9, SessionRecord::Forgotten(KeyHash(1))), now());
    assert_eq!((account(&sessions, 1), sessions.version()), (None, Some(version(7))), "one was missed");
    assert!(is_due(&sessions));
    let other = SessionVersion { begun: 2, ..version(8) };
    sessions.receive(SessionMessage { version: other, ..change(8, learned(1, 8)) }, now());
    assert_eq!((account(&sessions, 1), sessions.version()), (Some(8), Some(version(7))));
    assert!(is_due(&sessions), "Redis began anew");
}

#[test]
fn the_first_change_ever_is_no_gap() {
    let sessions = sessions();
    sessions.receive(change(1, learned(1, 7)), now());
    assert_eq!((account(&sessions, 1), sessions.version()), (Some(7), Some(version(1))));
    assert!(!is_due(&sessions));
}

#[test]
fn a_page_that_was_read_before_a_message_undoes_nothing_of_it() {
    let sessions = sessions();
    sessions.begin_load(true);
    sessions.receive(change(4, SessionRecord::Forgotten(KeyHash(1))), now());
    sessions.receive(change(5, learned(2, 8)), now());
    sessions.load(&page(3, vec![learned(1, 7), learned(2, 7), learned(3, 7)]), now());
    assert_eq!([1, 2, 3].map(|session| account(&sessions, session)), [None, Some(8), Some(7)]);
    sessions.end_load(Some(version(3)), true);
    assert_eq!([1, 2, 3].map(|session| account(&sessions, session)), [None, Some(8), Some(7)]);
    assert_eq!(sessions.version(), Some(version(5)));
}

#[test]
fn what_is_in_no_page_is_forgotten_unless_redis_is_to_be_sent_it() {
    let sessions = sessions();
    sessions.begin_load(true);
    sessions.load(&page(1, vec![learned(1, 7), learned(2, 7)]), now());
    sessions.end_load(Some(version(1)), true);
    let learned_here = ([KeyHash(3)].into_iter().collect(), [].into_iter().collect());
    let sign_in = crate::rules::decision::SignIn {
        account: KeyHash(8),
        keep: HOUR,
        learned: learned_here.0,
        carried: learned_here.1,
    };
    assert!(sessions.sign_in(&sign_in, now()));
    sessions.begin_load(true);
    sessions.load(&page(9, vec![learned(2, 7)]), now());
    sessions.end_load(Some(version(9)), true);
    assert_eq!([1, 2, 3].map(|session| account(&sessions, session)), [None, Some(7), Some(8)]);
    let unsent = sessions.unsent(10, now());
    assert_eq!(unsent.iter().map(|known| known.session).collect::<Vec<_>>(), [KeyHash(3)]);
    sessions.mark_sent(&unsent[0]);
    sessions.mark_unsent(&[]);
    assert_eq!(sessions.unsent(10, now()), []);
    sessions.mark_all_unsent();
    assert_eq!(sessions.unsent(10, now()).len(), 2);
}

#[test]
fn an_answer_that_a_later_message_overtook_brings_nothing_back() {
    let sessions = sessions();
    sessions.end_load(Some(version(3)), false);
    sessions.receive(change(4, learned(1, 7)), now());
    sessions.receive(change(5, SessionRecord::Forgotten(KeyHash(1))), now());
    let known = KnownSession { session: KeyHash(1), account: KeyHash(7), keep: HOUR, used: now() };
    sessions.receive_learned(version(4), &[known]);
    assert_eq!(account(&sessions, 1), None);
    sessions.receive_learned(version(6), &[known]);
    assert_eq!(account(&sessions, 1), Some(7));
}

#[test]
fn a_use_elsewhere_keeps_a_session_and_is_not_told_again() {
    let sessions = sessions();
    sessions.receive(change(1, learned(1, 7)), now());
    let later = now() + HOUR / 2;
    let records = vec![SessionRecord::Used { session: KeyHash(1), age: Duration::ZERO }];
    sessions.receive(SessionMessage { version: version(1), is_change: false, records }, later);
    assert_eq!(sessions.account(KeyHash(1), later + Duration::from_secs(30)).map(|account| account.0), Some(7));
    assert_eq!(sessions.take_used(later), []);
    assert!(sessions.account(KeyHash(1), now() + HOUR + HOUR / 4).is_some());
    assert_eq!(sessions.take_used(now() + HOUR + HOUR / 4).len(), 1);
}

#[test]
fn a_message_is_read_as_the_script_writes_it() {
    let sessions = sessions();
    let mut message = b"sessions c 00000000000000ff 1 1700000000000001 l".to_vec();
    message.extend_from_slice(&1_u128.to_be_bytes());
    message.extend_from_slice(&7_u128.to_be_bytes());
    message.extend_from_slice(&36_000_u32.to_be_bytes());
    message.extend_from_slice(&[0; 7]);
    sessions.apply_message(&message, now());
    assert_eq!(account(&sessions, 1), Some(7));
    let known = SessionVersion { begun: 0xff, changes: 1, stamp: 1_700_000_000_000_001 };
    assert_eq!(sessions.version(), Some(known));
}

proptest! {
    #[test]
    fn any_message_can_be_applied(kind in "[cux]?", words in vec("[0-9a-f]{0,20}", 0..4), noise in vec(any::<u8>(), 0..200)) {
        let sessions = sessions();
        let head = format!("sessions {kind} {} ", words.join(" "));
        sessions.apply_message(&[head.as_bytes(), &noise].concat(), now());
        sessions.apply_message(&[&b"sessions "[..], &noise].concat(), now());
        sessions.apply_message(&[&b"sessions c 1 1 1 "[..], &noise].concat(), now());
    }
}
