mod loss;
mod measurements;

use std::io;
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;
use smallvec::smallvec;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::{runtime, task};

use super::client::SuccessorClient;
use super::message::{HandoverReply, HandoverRequest, ReplyFrame, RequestFrame};
use super::transfer::{FrozenCounts, ReceivedCounts};
use crate::rules::decision::batch::{Charged, Items, KnownClientKey, Ledger};
use crate::rules::decision::{
    Batch, Charge, OwnedSettlement, OwnedVerdict, SessionChange, Settlement, SignIn, Verdict,
};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Algorithm, Count, Rule};
use crate::store::bans::BanSubject;
use crate::store::handover::message;
use crate::store::handover::message::TransferVersion;
use crate::store::handover::moving_keys::{Arrival, KeysPiece};
use crate::store::memory::MemorySettings;
use crate::store::{MemoryStore, MovableStore, Store, StoreError};
use crate::words::clock::{Clock, ManualClock, Timestamp};
use crate::words::pending_reservations::{PendingReservations, ToldLater};

fn store(clock: &ManualClock) -> MovableStore {
    memory(clock).into()
}

fn memory(clock: &ManualClock) -> MemoryStore {
    MemoryStore::new(
        &MemorySettings { max_keys: 5000, max_sessions: 1000, snapshot: None },
        Clock::Manual(clock.clone()),
    )
}

fn clock() -> ManualClock {
    ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000))
}

/// A rule of every kind.
fn rules() -> Vec<Rule> {
    let rates = || "3/second; 7 per 4 seconds".parse().expect("rates");
    let of = |algorithm| {
        let cost = if algorithm == Algorithm::SlidingWindowCounter { 2 } else { 1 };
        Rule::Rates { algorithm, rates: rates(), cost: cost.try_into().expect("a cost") }
    };
    Algorithm::all().into_iter().map(of).chain([Rule::Distinct(rates()), two_slots()]).collect()
}

fn two_slots() -> Rule {
    Rule::Concurrent(2.try_into().expect("above zero"))
}

fn charge(rule: &Rule, key: u128, item: u64) -> Charge<'_> {
    let is_slot = matches!(rule, Rule::Concurrent(_));
    Charge {
        count: if key.is_multiple_of(2) && !is_slot { Count::Failures } else { Count::Requests },
        items: if matches!(rule, Rule::Distinct(_)) { smallvec![item] } else { Items::new() },
        // Keys in several shards.
        ..Charge::new(0, KeyHash(key << 64 | key), rule)
    }
}

fn one(charge: Charge<'_>) -> Batch<'_> {
    Batch { charges: smallvec![charge], ..Batch::default() }
}

/// A process that takes over from another, which is asked until all keys have moved.
struct Takeover {
    to: Arc<MovableStore>,
    moving: JoinHandle<io::Result<Arc<SuccessorClient>>>,
    arrival: Arrival,
}

impl Takeover {
    /// Returns the process that has taken over when it has all keys.
    async fn complete(self) -> Arc<MovableStore> {
        self.arrival.complete(Duration::from_secs(60)).await.expect("all keys arrive");
        self.moving.await.expect("no panic").expect("the successor is there");
        self.to
    }
}

/// Lets one process take over from another.
async fn hand_over(from: &Arc<MovableStore>, clock: &ManualClock) -> Arc<MovableStore> {
    begin(from, memory(clock), TransferVersion::V4, 1).await.complete().await
}

/// Moves all but the keys, which then follow in pieces of so many bytes.
async fn begin(from: &Arc<MovableStore>, mut to: MemoryStore, version: TransferVersion, piece: usize) -> Takeover {
    to.hash_with(from.secret());
    let (from, to) = (Arc::clone(from), Arc::new(MovableStore::from(to)));
    let (ours, theirs) = UnixStream::pair().expect("two ends");
    let (pass, passed) = mpsc::channel::<OwnedFd>();
    let giving = task::spawn_blocking(move || {
        let frozen = FrozenCounts::begin(&from, version);
        let sent = frozen.send(&ours, |socket| {
            pass.send(socket.try_clone_to_owned()?).expect("it is there");
            Ok(())
        });
        sent.expect("it is read");
        (frozen, ours)
    });
    let taking = task::spawn_blocking({
        let to = Arc::clone(&to);
        move || (ReceivedCounts::receive(&to, &theirs, || Ok(passed.recv().expect("it was passed"))), theirs)
    });
    let (received, theirs) = taking.await.expect("no panic");
    let (frozen, ours) = giving.await.expect("no panic");
    let arrival = received.expect("it came whole").begin(theirs, oneshot::channel().0);
    let moving = task::spawn_blocking(move || frozen.move_in_pieces(ours, piece));
    Takeover { to, moving, arrival }
}

/// What one of the processes does.
#[derive(Clone, Debug)]
enum Step {
    Decide {
        by: usize,
        key: u128,
        rule: usize,
        item: u64,
    },
    Settle {
        which: usize,
        how: u8,
    },
    Wait(u64),
    HandOver,
    /// All keys arrive.
    Arrive,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..4_usize, 0..6_u128, 0..rules().len(), 0..9_u64)
            .prop_map(|(by, key, rule, item)| Step::Decide { by, key, rule, item }),
        4 => (any::<usize>(), 0..4_u8).prop_map(|(which, how)| Step::Settle { which, how }),
        2 => (0..900_u64).prop_map(Step::Wait),
        1 => Just(Step::HandOver),
        1 => Just(Step::Arrive),
    ];
    vec(step, 0..80)
}

/// A request under way: which process decided it, and the charges of the processes and of the store that never moves.
struct UnderWay {
    by: usize,
    rule: usize,
    key: u128,
    item: u64,
    charged: [Charged; 2],
}

fn settlements<'p>(of: &'p UnderWay, charge: &'p Charge<'p>, charged: &'p Charged, how: u8) -> Vec<Settlement<'p>> {
    let (key, rule, items) = (charge.key, charge.rule, &charge.items);
    match (rule, how) {
        (Rule::Concurrent(_), _) => vec![Settlement::Release(key)],
        (_, 0) if of.key.is_multiple_of(2) => vec![Settlement::TakeBack { key, rule, charged }],
        (_, 1) => vec![Settlement::TakeBack { key, rule, charged }, Settlement::Reset(key)],
        // A charge that waits for its outcome was made already.
        (_, 2) if !of.key.is_multiple_of(2) => vec![Settlement::Charge { key, rule, items }],
        _ => vec![Settlement::Keep { key, rule, items, charged }],
    }
}

async fn play(steps: Vec<Step>) {
    let (clock, rules) = (clock(), rules());
    let alone = store(&clock);
    let mut processes = vec![Arc::new(store(&clock))];
    let mut moving: Option<Takeover> = None;
    let mut under_way: Vec<UnderWay> = Vec::new();
    for step in steps {
        match step {
            Step::Wait(millis) => clock.advance(Duration::from_millis(millis)),
            Step::HandOver if processes.len() < 4 && moving.is_none() => {
                let last = processes.last().expect("one");
                moving = Some(begin(last, memory(&clock), TransferVersion::V4, 1).await);
            }
            Step::Arrive if moving.is_some() => {
                processes.push(moving.take().expect("one").complete().await);
            }
            Step::Decide { by, key, rule, item } => {
                let by = by % processes.len();
                // One key is counted by one rule.
                let key = key + 10 * rule as u128;
                let batch = one(charge(&rules[rule], key, item));
                let found = processes[by].decide(&batch).await.expect("the successor replies");
                let expected = alone.decide(&batch).await.expect("it is here");
                let seen = |verdict: &Verdict| (verdict.retry_after, verdict.standings.clone(), verdict.is_exempt);
                assert_eq!(seen(&found[0]), seen(&expected[0]));
                let looked = processes[by].look(&batch).await.expect("the successor replies");
                assert_eq!(seen(&looked[0]), seen(&alone.look(&batch).await.expect("it is here")[0]));
                let charged = found.into_iter().chain(expected).filter_map(|verdict| verdict.charged);
                if let Ok(charged) = <[Charged; 2]>::try_from(charged.collect::<Vec<_>>()) {
                    assert_eq!((charged[0].moment, &charged[0].fresh), (charged[1].moment, &charged[1].fresh));
                    under_way.push(UnderWay { by, rule, key, item, charged });
                }
            }
            Step::Settle { which, how } if !under_way.is_empty() => {
                let of = under_way.swap_remove(which % under_way.len());
                let charge = charge(&rules[of.rule], of.key, of.item);
                let [there, here] = &of.charged;
                processes[of.by].settle(&settlements(&of, &charge, there, how)).await.expect("the successor replies");
                alone.settle(&settlements(&of, &charge, here, how)).await.expect("it is here");
                let key = charge.key;
                drop(of.charged);
                assert_eq!(processes[of.by].is_unsettled(key).await, alone.is_unsettled(key).await);
            }
            Step::HandOver | Step::Arrive | Step::Settle { .. } => {}
        }
    }
    if let Some(moving) = moving {
        moving.complete().await;
    }
}

fn run<T>(what: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(what)
}

proptest! {
    #[test]
    fn processes_that_take_over_from_one_another_count_as_one(steps in steps()) {
        run(play(steps));
    }

    #[test]
    fn frames_are_read_in_any_pieces(messages in vec(vec(any::<u64>(), 0..20), 0..20), piece in 1..50_usize) {
        let mut unsent = Vec::new();
        for words in &messages {
            message::push(&mut unsent, words);
        }
        let (mut received, mut read) = (Vec::new(), Vec::new());
        for some in unsent.chunks(piece) {
            received.extend_from_slice(some);
            let mut at = 0;
            while let Some(words) = message::next::<Vec<u64>>(&received, &mut at).expect("frames") {
                read.push(words);
            }
            received.drain(..at);
        }
        prop_assert_eq!((read, received), (messages, Vec::new()));
    }

    #[test]
    fn no_bytes_are_taken_for_more_than_they_are(bytes in vec(any::<u8>(), 0..200)) {
        let _ = message::next::<RequestFrame>(&bytes, &mut 0);
        let _ = message::receive::<ReplyFrame>(&*bytes);
    }
}

/// Processes of different versions exchange them, so that no field may move.
#[test]
fn settlements_and_verdicts_have_the_bytes_that_they_always_had() {
    let rules = rules();
    let (rule, items) = (&rules[0], &smallvec![5, 6]);
    let reservation = || Some(Arc::new(PendingReservations::with_resets(3)).watch().reserve());
    let fresh = || smallvec![6];
    let of = |ledger, reservation| Charged { moment: Timestamp::from_micros(9), ledger, fresh: fresh(), reservation };
    let (charged, free) = (&of(Ledger::Local, reservation()), &of(Ledger::Local, None));
    let (key, most, keep) = (KeyHash(7), NonZeroU32::new(4).expect("above zero"), Duration::from_secs(2));
    let settlements = [
        Settlement::Release(key),
        Settlement::TakeBack { key, rule, charged },
        Settlement::TakeBack { key, rule, charged: free },
        Settlement::Keep { key, rule, items, charged },
        Settlement::Charge { key, rule, items },
        Settlement::Reset(key),
        Settlement::Remember {
            of: KnownClientKey { subject: key, client: 8 },
            most,
            keep,
            was_known: ToldLater::default(),
        },
    ];
    let verdict = Verdict { retry_after: Some(keep), charged: Some(charged.clone()), ..Verdict::exempt() };
    let owned = settlements.iter().map(OwnedSettlement::of).collect::<Vec<_>>();
    let bytes = |written: Result<Vec<u8>, postcard::Error>| written.expect("it can be written");
    let written =
        bytes(postcard::to_allocvec(&(owned, [OwnedVerdict::of(&verdict), OwnedVerdict::of(&Verdict::exempt())])));
    let expected = [
        &[7, 0, 7][..],
        &[1, 7, 0, 0, 2, 3, 1, 0, 7, 4, 0, 1, 9, 1, 6, 1, 3],
        &[1, 7, 0, 0, 2, 3, 1, 0, 7, 4, 0, 1, 9, 1, 6, 0],
        &[2, 7, 0, 0, 2, 3, 1, 0, 7, 4, 0, 1, 2, 5, 6, 9, 1, 6, 1, 3],
        &[3, 7, 0, 0, 2, 3, 1, 0, 7, 4, 0, 1, 2, 5, 6],
        &[4, 7, 0],
        &[5, 7, 8, 4, 2, 0],
        &[1, 2, 0, 0, 1, 9, 1, 6, 1, 3, 1],
        &[0, 0, 0, 1],
    ];
    assert_eq!(written, expected.concat());
}

#[test]
fn a_request_for_frozen_counts_waits_and_is_decided_here_when_they_thaw() {
    run(async {
        let (clock, rules) = (clock(), rules());
        let store = Arc::new(store(&clock));
        let batch = one(charge(&rules[0], 1, 0));
        let frozen = FrozenCounts::begin(&store, TransferVersion::V4);
        let mut asked = Box::pin(store.decide(&batch));
        let waits = tokio::time::timeout(Duration::from_millis(50), &mut asked).await;
        assert!(waits.is_err(), "{waits:?}");
        drop(frozen);
        assert!(asked.await.expect("it is here")[0].passes());
        assert!(store.decide(&batch).await.expect("it is here")[0].passes());
        assert_eq!(store.len(), 1);
    });
}

#[test]
fn a_decision_whose_caller_has_left_keeps_no_slot() {
    run(async {
        let (clock, slots) = (clock(), two_slots());
        let before = Arc::new(store(&clock));
        let after = hand_over(&before, &clock).await;
        let batch = one(charge(&slots, 1, 0));
        for _ in 0..5 {
            let mut asked = Box::pin(before.decide(&batch));
            // The request is sent, and there is no reply yet.
            assert!((&mut asked).now_or_never().is_none());
        }
        // Later requests arrive after these.
        let key = batch.charges[0].key;
        before.settle(&[Settlement::Release(key)]).await.expect("the successor replies");
        before.settle(&[Settlement::Release(key)]).await.expect("the successor replies");
        let verdicts = after.look(&batch).await.expect("it is here");
        assert!(verdicts[0].passes());
    });
}

#[test]
fn bans_of_either_process_hold_in_the_other() {
    run(async {
        let clock = clock();
        let first = Arc::new(store(&clock));
        let second = hand_over(&first, &clock).await;
        let third = hand_over(&second, &clock).await;
        let network = |text: &str| BanSubject::Address(text.parse().expect("a network"));
        let (span, reason) = (Duration::from_secs(60), "scans".into());
        let newest = third.ban_by_operator(network("203.0.113.7/32"), span, Arc::clone(&reason)).await.expect("room");
        while first.bans().find(newest.id).is_none() || second.bans().find(newest.id).is_none() {
            task::yield_now().await;
        }
        let oldest = first.ban_by_operator(network("198.51.100.7/32"), span, reason).await.expect("room");
        assert_eq!(third.bans().find(oldest.id).map(|ban| ban.until), Some(oldest.until));
        assert_eq!(first.lift(newest.id).await.expect("the successor replies").map(|ban| ban.id), Some(newest.id));
        assert!(third.bans().find(newest.id).is_none());
    });
}

#[test]
fn sessions_move_and_whoever_signs_in_at_either_process_is_judged_by_both() {
    run(async {
        let clock = clock();
        let sign_in = |account: u128, learned: u128, carried: u128| SignIn {
            account: KeyHash(account),
            keep: Duration::from_secs(3600),
            learned: [KeyHash(learned)].into_iter().collect(),
            carried: [KeyHash(carried)].into_iter().collect(),
        };
        let account = |store: &MovableStore, session: u128| store.sessions().account(KeyHash(session), clock.now());
        let first = Arc::new(store(&clock));
        assert!(first.sign_in(sign_in(7, 1, 0)).await);
        let second = hand_over(&first, &clock).await;
        let third = hand_over(&second, &clock).await;
        assert_eq!(account(&third, 1), Some(KeyHash(7)));
        // Learned by the newest process, and carried to the oldest.
        assert!(third.sign_in(sign_in(8, 2, 0)).await);
        assert!(!first.sign_in(sign_in(9, 3, 2)).await);
        assert!(!second.sign_in(sign_in(9, 3, 1)).await);
        assert_eq!(account(&third, 3), None);
        // Learned by the oldest process, for itself and for the newest.
        assert!(first.sign_in(sign_in(9, 4, 0)).await);
        assert_eq!([account(&first, 4), account(&third, 4)], [Some(KeyHash(9)); 2]);
        let changes = vec![
            SessionChange::Renew { old: KeyHash(4), new: KeyHash(5) },
            SessionChange::Forget(KeyHash(1)),
            SessionChange::Learn { session: KeyHash(6), account: KeyHash(8), keep: Duration::from_secs(60) },
        ];
        first.change_sessions(changes).expect("it tells the newest").await.expect("no panic");
        for process in [&first, &third] {
            assert_eq!((account(process, 5), account(process, 1)), (Some(KeyHash(9)), None));
            assert_eq!(account(process, 6), Some(KeyHash(8)));
        }
    });
}

#[test]
fn requests_fail_at_once_when_the_successor_is_gone() {
    run(async {
        let (clock, rules) = (clock(), rules());
        let store = Arc::new(store(&clock));
        let (ours, theirs) = UnixStream::pair().expect("two ends");
        let frozen = FrozenCounts::begin(&store, TransferVersion::V3);
        frozen.move_to(ours).expect("no key follows");
        let batch = one(charge(&rules[0], 1, 0));
        let mut asked = Box::pin(store.decide(&batch));
        assert!((&mut asked).now_or_never().is_none());
        drop(theirs);
        assert_eq!(asked.await, Err(StoreError::SuccessorGone));
        assert_eq!(store.decide(&batch).await, Err(StoreError::SuccessorGone));
    });
}
