use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;
use crate::clock::Clock;
use crate::clock::ManualClock;
use crate::decision::SessionChange;
use crate::decision::SessionHashes;
use crate::decision::SignIn;
use crate::key::DisplayKey;
use crate::key::Key;
use crate::limit::Ladder;
use crate::store::bans::BanSubject;
use crate::store::memory::Settings;

fn store(clock: &ManualClock) -> MemoryStore {
    MemoryStore::new(&Settings { max_keys: 100, max_sessions: 1000, snapshot: None }, Clock::Manual(clock.clone()))
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
    write(&path, &export(&before).expect("memory")).expect("it is written");
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
    assert!(before.sign_in(sign_in(7, 1)).await && before.sign_in(sign_in(8, 2)).await);
    clock.advance(hour / 2);
    assert_eq!(before.sessions().account(KeyHash(1), clock.now()), Some(KeyHash(7)));
    write(&path, &export(&before).expect("memory")).expect("it is written");
    let mut after = store(&clock);
    restore(&path, &mut after);
    clock.advance(hour * 3 / 4);
    assert_eq!(after.sessions().account(KeyHash(1), clock.now()), Some(KeyHash(7)));
    assert_eq!(after.sessions().account(KeyHash(2), clock.now()), None);
    // A file of a version that knew no sessions.
    write(&path, &export_without_sessions(&before).expect("memory")).expect("it is written");
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

#[test]
fn a_damaged_file_is_put_aside_and_stops_nothing() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    write(&path, &export(&store(&clock)).expect("memory")).expect("it is written");
    let whole = fs::read(&path).expect("it is there");
    for damaged in [&whole[..whole.len() - 1], &whole[..5], b"", b"portcullis state 9\n"] {
        fs::write(&path, damaged).expect("it is written");
        restore(&path, &mut store(&clock));
        assert_eq!(fs::read(beside(&path, ".damaged")).expect("it is kept"), damaged);
        assert!(!path.exists());
    }
    restore(&path, &mut store(&clock));
    restore(folder.path(), &mut store(&clock));
    assert!(folder.path().exists());
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
    assert_eq!(read(&path).expect("it is there").0.bans.len(), 1);
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
