//! What a store knows again after a restart, and what is told when it cannot.

mod history;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::state_file::{StateFile, beside};
use super::*;
use crate::rules::decision::{SessionChange, SessionHashes, SignIn};
use crate::rules::key::{DisplayKey, Key, KeyHash};
use crate::rules::limit::Ladder;
use crate::store::bans::BanSubject;
use crate::store::memory::{ChangeMark, MemorySettings, MemoryStore};
use crate::store::snapshot::restore::{Replayed, Unreadable, replay};
use crate::store::snapshot::{frame, writer};
use crate::words::clock::{Clock, ManualClock, Timestamp, wall};

fn store(clock: &ManualClock) -> MemoryStore {
    MemoryStore::new(
        &MemorySettings { max_keys: 100, max_sessions: 1000, snapshot: None },
        Clock::Manual(clock.clone()),
    )
}

fn clock() -> ManualClock {
    ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000))
}

#[test]
fn bans_steps_seeds_and_the_secret_survive() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let ladder = Ladder::new([10, 60].map(Duration::from_secs).to_vec()).expect("two lengths");
    let before = store(&clock);
    let key = before.hasher().hash("login", &Key::default());
    let address = "198.51.100.7/32".parse().expect("a network");
    let parts =
        |client: &str, name: &str| vec![("client_ip".into(), client.into()), ("param.user".into(), name.into())];
    let named = DisplayKey {
        masked: parts("198.51.*.*", "a***1f3c"),
        clear: Some(parts("198.51.100.7", "alice")),
        networks: vec![(0, address)],
    };
    let subject = BanSubject::Key { key, limit: "login".into(), named, client: None };
    before.bans().ban_by_limit(subject.clone(), &ladder, &"the limit was reached".into());
    let network = BanSubject::Address("203.0.113.0/24".parse().expect("a network"));
    before.bans().ban_by_operator(network, Duration::from_secs(99), "scans".into()).expect("room");
    StateFile::begin(&path, &before).expect("it is written");
    let mode = fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let bytes = fs::read(&path).expect("it is there");
    assert!(!bytes.windows(5).any(|window| window == b"alice"), "the name of a user");

    clock.advance(Duration::from_secs(4));
    let mut after = store(&clock);
    restore(&path, &mut after);
    assert_eq!(after.hasher().hash("login", &Key::default()), key);
    assert_eq!(after.bans().left(key), Some(Duration::from_secs(6)));
    assert_eq!(after.bans().of_address([203, 0, 113, 9].into()).map(|(_, left)| left), Some(Duration::from_secs(95)));
    let known = after.bans().find(subject.id()).expect("it lasts");
    let BanSubject::Key { named, .. } = &known.subject else { panic!("{known:?}") };
    assert_eq!(*named.for_operators(), parts("198.51.100.7", "a***1f3c"));
    assert!(after.key_ring().load().own_seeds() == before.key_ring().load().own_seeds());
    clock.advance(Duration::from_secs(6));
    let (second, _) = after.bans().ban_by_limit(subject, &ladder, &"".into());
    assert_eq!(second.length, Duration::from_secs(60));
}

/// A ban as versions wrote it that kept no address.
#[test]
fn a_ban_without_the_address_of_its_key_is_read_as_it_is() {
    let clock = clock();
    let before = store(&clock);
    let parts = vec![("client_ip".into(), "198.51.*.*".into())];
    let named = DisplayKey { masked: parts.clone(), ..DisplayKey::default() };
    let subject = BanSubject::Key { key: KeyHash(7), limit: "login".into(), named, client: None };
    before.bans().ban_by_operator(subject.clone(), Duration::from_secs(99), "".into()).expect("room");
    let bytes = export(&before).expect("memory");
    assert!(!bytes.windows(8).any(|window| window == b"networks"));
    let mut after = store(&clock);
    assert!(import(&bytes, &mut after));
    let known = after.bans().find(subject.id()).expect("it lasts");
    assert_eq!((known.network(), &known.subject), (None, &subject));
}

#[tokio::test]
async fn sessions_survive_with_their_last_use() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let before = store(&clock);
    let hour = Duration::from_secs(3600);
    let sign_in = |account: u128, learned: u128| SignIn {
        account: KeyHash(account),
        keep: hour,
        learned: [KeyHash(learned)].into_iter().collect(),
        carried: SessionHashes::new(),
    };
    assert!(before.sign_in_now(&sign_in(7, 1)) && before.sign_in_now(&sign_in(8, 2)));
    clock.advance(hour / 2);
    assert_eq!(before.sessions().account(KeyHash(1), clock.now()), Some(KeyHash(7)));
    StateFile::begin(&path, &before).expect("it is written");
    let mut after = store(&clock);
    restore(&path, &mut after);
    clock.advance(hour * 3 / 4);
    assert_eq!(after.sessions().account(KeyHash(1), clock.now()), Some(KeyHash(7)));
    assert_eq!(after.sessions().account(KeyHash(2), clock.now()), None);
    // A file of a version that knew no sessions.
    fs::write(&path, writer::export_without_sessions(&before).expect("memory")).expect("it is written");
    restore(&path, &mut after);
    assert!(after.sessions().is_empty());
}

#[test]
fn a_session_that_is_learned_or_used_after_a_minute_is_a_change_to_write() {
    let clock = clock();
    let store = store(&clock);
    let mut mark = store.change_mark();
    let mut changes = || {
        let before = std::mem::replace(&mut mark, store.change_mark());
        before != mark
    };
    let (session, keep) = (KeyHash(1), Duration::from_secs(86_400));
    let (learned, carried) = ([session].into_iter().collect(), SessionHashes::new());
    store.sign_in_now(&SignIn { account: KeyHash(7), keep, learned, carried });
    assert!(changes());
    clock.advance(Duration::from_secs(59));
    assert!(store.sessions().account(session, clock.now()).is_some() && !changes());
    clock.advance(Duration::from_secs(1));
    assert!(store.sessions().account(session, clock.now()).is_some() && changes());
    store.change_sessions_now(&[SessionChange::Forget(session)]);
    assert!(changes());
}

fn ban(store: &MemoryStore, network: &str) {
    let network = BanSubject::Address(network.parse().expect("a network"));
    store.bans().ban_by_operator(network, Duration::from_secs(99), "scans".into()).expect("room");
}

#[track_caller]
fn read(path: &Path) -> Result<Replayed, Unreadable> {
    replay(&fs::read(path).expect("it is there"))
}

#[test]
fn a_file_that_is_no_snapshot_is_kept_and_stops_nothing() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let before = store(&clock);
    StateFile::begin(&path, &before).expect("it is written");
    let (frames, piece) = (fs::read(&path).expect("it is there"), export(&before).expect("memory"));
    let header = frame::LENGTH;
    for damaged in
        [&piece[..piece.len() - 1], &piece[..5], &frames[..header - 1], &frames[..header], b"", b"portcullis state 9\n"]
    {
        fs::write(&path, damaged).expect("it is written");
        let mut after = store(&clock);
        let secret = after.secret();
        restore(&path, &mut after);
        assert_eq!(after.secret(), secret);
        assert_eq!(fs::read(beside(&path, ".damaged")).expect("it is kept"), damaged);
    }
    assert_eq!(read(&path).expect_err("it is unreadable"), Unreadable::Version(9));
    StateFile::begin(&path, &before).expect("another takes its place");
    assert_eq!(fs::read(beside(&path, ".damaged")).expect("it is kept"), b"portcullis state 9\n");
    restore(&folder.path().join("absent"), &mut store(&clock));
    restore(folder.path(), &mut store(&clock));
    assert!(folder.path().exists());
}

#[test]
fn a_file_that_is_damaged_in_the_middle_is_read_as_far_as_it_goes_and_kept() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let before = store(&clock);
    let mut file = StateFile::begin(&path, &before).expect("it is written");
    let mut ends = vec![file.length()];
    for network in ["203.0.113.0/24", "198.51.100.0/24", "192.0.2.0/24"] {
        ban(&before, network);
        assert!(file.append(&before).expect("it is written"));
        ends.push(file.length());
    }
    let mut bytes = fs::read(&path).expect("it is there");
    bytes[usize::try_from(ends[2]).expect("short") - 1] ^= 1;
    fs::write(&path, &bytes).expect("it is written");
    let replayed = read(&path).expect("it can be read");
    assert_eq!((replayed.damaged as u64, replayed.torn), (ends[2] - ends[1], 0));
    let mut after = store(&clock);
    restore(&path, &mut after);
    assert_eq!(after.secret(), before.secret());
    let is_banned = |last: [u8; 4]| after.bans().of_address(last.into()).is_some();
    assert_eq!([[203, 0, 113, 1], [198, 51, 100, 1], [192, 0, 2, 1]].map(is_banned), [true, false, true]);
    assert_eq!(fs::read(beside(&path, ".damaged")).expect("it is kept"), bytes);
}

/// A gateway of that version wrote this file, with a ban, the known clients of two names and a session.
#[test]
fn a_file_of_the_first_version_is_read() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("state");
    fs::write(&path, include_bytes!("tests/version_1.state")).expect("it is written");
    let clock = ManualClock::at(Timestamp::from_micros(1_795_738_750_000_000));
    let mut after = store(&clock);
    restore(&path, &mut after);
    assert!(after.bans().of_address([203, 0, 113, 9].into()).is_some());
    let known: Vec<_> = after.known_clients_between(&ChangeMark::default(), &after.change_mark()).collect();
    assert_eq!(known.iter().map(|(_, clients)| clients.len()).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(after.lasting_sessions().count(), 1);
    assert!(!beside(&path, ".damaged").exists());
}

#[tokio::test]
async fn changes_are_written_soon_and_at_the_end() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let (store, stop) = (Arc::new(store(&clock)), CancellationToken::new());
    let keeping = tokio::spawn(write_changes(
        Arc::new(SnapshotWriter::new(Some(path.clone()))),
        Arc::clone(&store),
        stop.clone(),
    ));
    let network = BanSubject::Address("203.0.113.0/24".parse().expect("a network"));
    store.bans().ban_by_operator(network, Duration::from_secs(99), "".into()).expect("room");
    stop.cancel();
    keeping.await.expect("it ends");
    assert_eq!(read(&path).expect("it is whole").content.bans.len(), 1);
    assert!(!beside(&path, ".new").exists());
}

#[tokio::test]
async fn a_suspended_writer_writes_nothing_until_it_is_resumed() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let store = Arc::new(store(&clock));
    let writer = Arc::new(SnapshotWriter::new(Some(path.clone())));
    let keep_once = async || {
        let stop = CancellationToken::new();
        stop.cancel();
        write_changes(Arc::clone(&writer), Arc::clone(&store), stop).await;
    };
    writer.suspend();
    keep_once().await;
    assert!(!path.exists());
    writer.resume();
    keep_once().await;
    assert!(path.exists());
}

#[test]
fn an_exported_snapshot_can_be_imported_and_other_bytes_cannot() {
    let clock = clock();
    let before = store(&clock);
    let network = BanSubject::Address("203.0.113.0/24".parse().expect("a network"));
    before.bans().ban_by_operator(network, Duration::from_secs(99), "scans".into()).expect("room");
    let bytes = export(&before).expect("memory");
    let mut after = store(&clock);
    assert!(import(&bytes, &mut after));
    assert_eq!(after.bans().count(), 1);
    assert_eq!(after.secret(), before.secret());
    assert!(!import(&bytes[1..], &mut after));
    assert!(!import(b"", &mut after));
}

/// A ban of a minute, of which ten seconds have passed when the process ends. How long it lasts for the next process.
#[track_caller]
fn left_after(move_clock: impl FnOnce(Timestamp) -> Timestamp) -> (Option<Duration>, Timestamp) {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let before = store(&clock);
    let hour = Duration::from_secs(3600);
    let address = "203.0.113.9/32".parse().expect("a network");
    before.bans().ban_by_operator(BanSubject::Address(address), Duration::from_secs(60), "".into()).expect("room");
    clock.advance(Duration::from_secs(10));
    // It ends with the process, and says until when that ran.
    let later = "198.51.100.9/32".parse().expect("a network");
    before.bans().ban_by_operator(BanSubject::Address(later), hour, "".into()).expect("room");
    StateFile::begin(&path, &before).expect("it is written");
    let other = ManualClock::at(move_clock(clock.now()));
    let mut after = store(&other);
    restore(&path, &mut after);
    let left = |address: [u8; 4]| after.bans().of_address(address.into()).map(|(_, left)| left);
    assert!(left([198, 51, 100, 9]).is_none_or(|left| left <= hour));
    (left([203, 0, 113, 9]), other.now())
}

#[test]
fn a_ban_lasts_no_longer_than_it_would_have_whatever_the_clock_shows() {
    let (years, seconds) = (Duration::from_secs(20 * 365 * 86_400), Duration::from_secs);
    let back = |by: Duration| move |now: Timestamp| Timestamp::EPOCH + now.since(Timestamp::EPOCH + by);
    assert_eq!(left_after(|now| now).0, Some(seconds(50)));
    assert_eq!(left_after(|now| now + seconds(20)).0, Some(seconds(30)));
    assert_eq!(left_after(|now| now + years).0, None);
    for by in [seconds(5), seconds(3600), years] {
        assert_eq!(left_after(back(by)).0, Some(seconds(50)), "{by:?}");
    }
}

#[test]
fn a_ban_of_a_gateway_whose_clock_was_slow_lasts_as_long_after_a_restart() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("state");
    let settings = MemorySettings { max_keys: 100, max_sessions: 1000, snapshot: None };
    // The wall clock was corrected by an hour since this one began.
    let slow = Clock::from(wall().earlier_by(Duration::from_secs(3600)));
    let (before, mut after) = (MemoryStore::new(&settings, slow), MemoryStore::new(&settings, Clock::system()));
    let network = BanSubject::Address("203.0.113.0/24".parse().expect("a network"));
    before.bans().ban_by_operator(network, Duration::from_secs(900), "scans".into()).expect("room");
    let file = StateFile::begin(&path, &before).expect("it is written");
    restore(&path, &mut after);
    let left = after.bans().of_address([203, 0, 113, 9].into()).map(|(_, left)| left).expect("it lasts");
    assert!((890..=900).contains(&left.as_secs()), "{left:?}");
    // Another process keeps off the file as long as this one has it.
    let refused = StateFile::begin(&path, &after).expect_err("it is in use").to_string();
    assert!(refused.starts_with("another gateway writes it"), "{refused}");
    drop(file);
    StateFile::begin(&path, &after).expect("it is free");
}
