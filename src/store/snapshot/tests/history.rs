//! A file that is appended to: what it says after every change, cut at every byte, and when it is begun anew.

use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::rules::decision::Settlement;
use crate::rules::decision::batch::KnownClientKey;
use crate::store::bans::BanId;
use crate::store::bans::codec::SavedBan;
use crate::store::sessions::codec::KnownSession;
use crate::store::snapshot::writer::SnapshotContent;
use crate::words::pending_reservations::ToldLater;

/// Something that a gateway learns.
#[derive(Clone, Debug)]
enum Change {
    SignIn { name: u8, client: u8 },
    Learn { account: u8, session: u8 },
    Use { session: u8 },
    Forget { session: u8 },
    Ban { address: u8, seconds: u16 },
    BanByLimit { key: u8 },
    Lift { address: u8 },
    Rotate,
    Wait { seconds: u32 },
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0..6_u8, 0..4_u8).prop_map(|(name, client)| Change::SignIn { name, client }),
        3 => (0..3_u8, 0..9_u8).prop_map(|(account, session)| Change::Learn { account, session }),
        1 => (0..9_u8).prop_map(|session| Change::Use { session }),
        2 => (0..9_u8).prop_map(|session| Change::Forget { session }),
        1 => (0..3_u8, 1..999_u16).prop_map(|(address, seconds)| Change::Ban { address, seconds }),
        1 => (0..3_u8).prop_map(|key| Change::BanByLimit { key }),
        1 => (0..3_u8).prop_map(|address| Change::Lift { address }),
        1 => Just(Change::Rotate),
        2 => (1..4000_u32).prop_map(|seconds| Change::Wait { seconds }),
    ]
}

/// How many sessions there may be: fewer than the histories know.
const SESSIONS: usize = 6;

fn small_store(clock: &ManualClock) -> MemoryStore {
    MemoryStore::new(
        &MemorySettings { max_keys: 100, max_sessions: SESSIONS, snapshot: None },
        Clock::Manual(clock.clone()),
    )
}

fn apply(change: &Change, store: &MemoryStore, clock: &ManualClock) {
    let network = |address: u8| format!("203.0.113.{address}/32").parse().expect("a network");
    match *change {
        Change::SignIn { name, client } => {
            let of = KnownClientKey { subject: KeyHash(name.into()), client: client.into() };
            let (most, keep) = (NonZeroU32::new(2).expect("two"), Duration::from_secs(5000));
            store.settle_here(&[Settlement::Remember { of, most, keep, was_known: ToldLater::default() }]);
        }
        Change::Learn { account, session } => {
            let (learned, carried) = ([KeyHash(session.into())].into_iter().collect(), SessionHashes::new());
            let keep = Duration::from_secs(3000);
            store.sign_in_now(&SignIn { account: KeyHash(account.into()), keep, learned, carried });
        }
        Change::Use { session } => {
            // Earlier uses are not worth being told on.
            clock.advance(Duration::from_secs(61));
            store.sessions().account(KeyHash(session.into()), clock.now());
        }
        Change::Forget { session } => {
            store.change_sessions_now(&[SessionChange::Forget(KeyHash(session.into()))]);
        }
        Change::Ban { address, seconds } => {
            let span = Duration::from_secs(seconds.into());
            store.bans().ban_by_operator(BanSubject::Address(network(address)), span, "".into()).expect("room");
        }
        Change::BanByLimit { key } => {
            let ladder = Ladder::new([10, 60].map(Duration::from_secs).to_vec()).expect("two lengths");
            let (key, limit) = (KeyHash(key.into()), "login".into());
            let subject = BanSubject::Key { key, limit, named: DisplayKey::default(), client: None };
            store.bans().ban_by_limit(subject, &ladder, &"".into());
        }
        Change::Lift { address } => _ = store.bans().lift(BanId::of_address(network(address))),
        Change::Rotate => {
            clock.advance(Duration::from_secs(40 * 86_400));
            store.key_ring().load_for_signing(clock.now());
        }
        Change::Wait { seconds } => clock.advance(Duration::from_secs(seconds.into())),
    }
}

type Known = (SnapshotContent, Vec<KnownSession>);

/// What a store knows, in an order of its own where the order means nothing.
fn known(store: &MemoryStore) -> Known {
    let mut content = SnapshotContent::of(store);
    let mut sessions: Vec<_> = store.lasting_sessions().collect();
    sessions.sort_by_key(|known| known.session);
    sort_bans(&mut content.bans);
    (content, sessions)
}

fn sort_bans(bans: &mut [SavedBan]) {
    bans.sort_by_key(|ban| ban.read().expect("a ban").ban.id);
}

/// What a process knows that begins with this file now.
fn known_after(file: &[u8], clock: &ManualClock) -> Known {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("state");
    fs::write(&path, file).expect("it is written");
    let mut store = small_store(clock);
    restore(&path, &mut store);
    known(&store)
}

/// What a file says, in an order of its own.
fn said(file: &[u8]) -> Known {
    let Replayed { mut content, mut sessions, .. } = replay(file).expect("it can be read");
    sort_bans(&mut content.bans);
    sessions.sort_by_key(|known| known.session);
    (content, sessions)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_file_that_is_cut_anywhere_says_what_was_known_at_some_moment(
        before in vec(changes(), 0..8),
        after in vec(vec(changes(), 1..4), 1..10),
    ) {
        let (folder, clock) = (TempDir::new().expect("a folder"), clock());
        let path = folder.path().join("state");
        let store = small_store(&clock);
        for change in &before {
            apply(change, &store, &clock);
        }
        let mut file = StateFile::begin(&path, &store).expect("it is written");
        let mut ends = vec![usize::try_from(file.length()).expect("short")];
        for some in &after {
            for change in some {
                apply(change, &store, &clock);
            }
            prop_assert!(file.append(&store).expect("it is written"));
            let written = fs::read(&path).expect("it is there");
            prop_assert_eq!(written.len() as u64, file.length());
            prop_assert_eq!(known_after(&written, &clock), known(&store));
            ends.push(written.len());
        }
        let whole = fs::read(&path).expect("it is there");
        for cut in ends[0]..=whole.len() {
            let end = *ends.iter().rfind(|end| **end <= cut).expect("the first is the shortest");
            let replayed = replay(&whole[..cut]).expect("it can be read");
            prop_assert_eq!((replayed.torn, replayed.damaged, replayed.is_cut_short), (cut - end, 0, false));
            if cut != end {
                prop_assert_eq!(said(&whole[..cut]), said(&whole[..end]));
            }
        }
        // The state itself was on disk before the file had its name: this is told.
        for cut in 0..ends[0] {
            prop_assert!(replay(&whole[..cut]).map_or(true, |replayed| replayed.is_cut_short), "{}", cut);
        }
    }
}

#[test]
fn a_process_that_ends_while_it_begins_a_file_leaves_the_other() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let before = store(&clock);
    ban(&before, "203.0.113.0/24");
    StateFile::begin(&path, &before).expect("it is written");
    fs::write(beside(&path, ".new"), b"portcullis state 2\nhalf").expect("it is written");
    let mut after = store(&clock);
    restore(&path, &mut after);
    assert_eq!(after.bans().count(), 1);
    StateFile::begin(&path, &after).expect("it is written");
    assert!(!beside(&path, ".new").exists());
}

/// Writes what has changed, as the task does.
fn write(writer: &SnapshotWriter, store: &MemoryStore) {
    if let Some(path) = writer.destination(store) {
        writer.write(&path, store).expect("it is written");
    }
}

fn sign_in(store: &MemoryStore, name: u128) {
    let of = KnownClientKey { subject: KeyHash(name << 64 | name), client: 7 };
    let (most, keep) = (NonZeroU32::MIN, Duration::from_secs(90 * 86_400));
    store.settle_here(&[Settlement::Remember { of, most, keep, was_known: ToldLater::default() }]);
}

#[test]
fn a_sign_in_among_many_names_is_a_short_record() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let settings = MemorySettings { max_keys: 100_000, max_sessions: 10, snapshot: None };
    let store = MemoryStore::new(&settings, Clock::Manual(clock.clone()));
    (0..20_000).for_each(|name| sign_in(&store, name));
    let writer = SnapshotWriter::new(Some(path.clone()));
    write(&writer, &store);
    let begun = fs::metadata(&path).expect("it is there");
    assert!(begun.len() > 20_000 * 20);
    for name in 0..100 {
        sign_in(&store, name);
        write(&writer, &store);
    }
    let appended = fs::metadata(&path).expect("it is there");
    assert_eq!(begun.ino(), appended.ino());
    assert!((1..100 * 80).contains(&(appended.len() - begun.len())), "{}", appended.len() - begun.len());
    // Nothing has changed.
    write(&writer, &store);
    assert_eq!(fs::metadata(&path).expect("it is there").len(), appended.len());
}

#[test]
fn what_is_appended_is_at_most_as_much_as_the_whole_state() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let store = store(&clock);
    (0..50).for_each(|name| sign_in(&store, name));
    let writer = SnapshotWriter::with_min_appended(Some(path.clone()), 0);
    write(&writer, &store);
    let whole = fs::metadata(&path).expect("it is there").len();
    let mut files = vec![];
    for change in 0..500 {
        sign_in(&store, change % 50);
        write(&writer, &store);
        let file = fs::metadata(&path).expect("it is there");
        assert!(file.len() < 2 * whole + 200, "{} of {whole}", file.len());
        files.push(file.ino());
    }
    files.dedup();
    assert!((5..=20).contains(&files.len()), "{files:?}");
    let mut after = small_store(&clock);
    restore(&path, &mut after);
    assert_eq!(known(&after), known(&store));
}

#[test]
fn what_has_ended_is_gone_from_the_file_after_a_day() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let (store, writer) = (store(&clock), SnapshotWriter::new(Some(path.clone())));
    ban(&store, "203.0.113.0/24");
    write(&writer, &store);
    let has_address = || fs::read(&path).expect("it is there").windows(11).any(|window| window == b"203.0.113.0");
    store.bans().lift(BanId::of_address("203.0.113.0/24".parse().expect("a network"))).expect("it lasts");
    write(&writer, &store);
    assert!(has_address());
    clock.advance(Duration::from_secs(86_400));
    sign_in(&store, 1);
    write(&writer, &store);
    assert!(!has_address());
}

#[test]
fn a_file_that_is_not_as_it_was_left_is_begun_anew() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let (store, writer) = (store(&clock), SnapshotWriter::new(Some(path.clone())));
    write(&writer, &store);
    let spoil: [&dyn Fn(); 4] = [
        &|| fs::remove_file(&path).expect("it was there"),
        &|| fs::write(&path, b"another").expect("it is written"),
        &|| {
            let (other, clock) = (folder.path().join("other"), ManualClock::at(clock.now()));
            StateFile::begin(&other, &small_store(&clock)).expect("it is written");
            fs::rename(other, &path).expect("it takes its place");
        },
        &|| {
            let whole = fs::read(&path).expect("it is there");
            let file = fs::OpenOptions::new().write(true).open(&path).expect("it is there");
            file.set_len(whole.len() as u64 - 1).expect("it is cut");
        },
    ];
    for (number, spoil) in spoil.into_iter().enumerate() {
        spoil();
        sign_in(&store, number as u128);
        write(&writer, &store);
        assert_eq!(known_after(&fs::read(&path).expect("it is there"), &clock), known(&store), "{number}");
    }
}

#[test]
fn a_file_into_which_a_change_could_not_be_written_is_begun_anew() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let (store, writer) = (store(&clock), SnapshotWriter::new(Some(path.clone())));
    write(&writer, &store);
    writer.break_file();
    sign_in(&store, 1);
    writer.write(&path, &store).expect_err("it cannot be written");
    assert!(writer.destination(&store).is_some());
    write(&writer, &store);
    assert_eq!(known_after(&fs::read(&path).expect("it is there"), &clock), known(&store));
    // Where there is no place for another file, the one there was stays, and it is tried again.
    fs::create_dir(beside(&path, ".new")).expect("a folder in its way");
    writer.break_file();
    for name in 2..4 {
        sign_in(&store, name);
        writer.write(&path, &store).expect_err("it cannot be written");
    }
    fs::remove_dir(beside(&path, ".new")).expect("it is out of the way");
    write(&writer, &store);
    assert_eq!(known_after(&fs::read(&path).expect("it is there"), &clock), known(&store));
}

#[test]
fn more_changes_than_are_noted_are_written_whole() {
    let (folder, clock) = (TempDir::new().expect("a folder"), clock());
    let path = folder.path().join("state");
    let (store, writer) = (store(&clock), SnapshotWriter::new(Some(path.clone())));
    let learn = |session: u128| {
        let (learned, carried) = ([KeyHash(session)].into_iter().collect(), SessionHashes::new());
        store.sign_in_now(&SignIn { account: KeyHash(1), keep: Duration::from_secs(99), learned, carried });
    };
    learn(1);
    write(&writer, &store);
    for round in 0..2000 {
        learn(round % 3);
    }
    store.change_sessions_now(&[SessionChange::Forget(KeyHash(1))]);
    write(&writer, &store);
    let (_, sessions) = known_after(&fs::read(&path).expect("it is there"), &clock);
    assert_eq!(sessions.iter().map(|known| known.session.0).collect::<Vec<_>>(), [0, 2]);
}
