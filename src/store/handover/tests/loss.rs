//! Successors that are gone before they have all keys, and predecessors that are.

use std::collections::HashMap;
use std::thread;

use super::*;

/// More than a socket has room for.
const KEYS: usize = 15_000;

/// Keys with a charge of three.
fn filled(clock: &ManualClock, rule: &Rule) -> Arc<MovableStore> {
    let settings = MemorySettings { max_keys: 4 * KEYS, max_sessions: 1000, snapshot: None };
    let store = Arc::new(MovableStore::from(MemoryStore::new(&settings, Clock::Manual(clock.clone()))));
    for key in 0..KEYS as u128 {
        store.decide_now(&one(charge(rule, 2 * key + 1, 0)));
    }
    store
}

#[test]
fn keys_that_had_not_moved_to_a_successor_that_is_gone_count_on() {
    run(async {
        let (clock, rules) = (clock(), rules());
        let store = filled(&clock, &rules[0]);
        let (ours, mut theirs) = UnixStream::pair().expect("two ends");
        let frozen = FrozenCounts::begin(&store, TransferVersion::V4);
        let moving = task::spawn_blocking(move || frozen.move_in_pieces(ours, 100));
        // It has some of the keys, and the request that moved one of them is not answered.
        let moved = task::spawn_blocking(move || {
            theirs.read_exact(&mut [0; 200]).expect("keys come");
            theirs
        });
        let theirs = moved.await.expect("no panic");
        let batch = one(charge(&rules[0], 1, 0));
        let mut asked = Box::pin(store.decide(&batch));
        assert!((&mut asked).now_or_never().is_none());
        drop(theirs);
        let told = moving.await.expect("no panic").expect_err("it is gone").to_string();
        assert!(told.contains("with it the counts of"), "{told}");
        // It is decided here.
        assert!(asked.await.expect("it is here")[0].passes());
        let left = store.len();
        assert!(left > 0 && left < KEYS, "{left}");
        let mut counted = 0;
        for key in 1..KEYS as u128 {
            let verdicts = store.decide(&one(charge(&rules[0], 2 * key + 1, 0))).await.expect("it is here");
            counted += usize::from(verdicts[0].standings[0].remaining == 1);
        }
        assert!(counted.abs_diff(left) <= 1, "{counted} of {left}");
        // The next process takes over all of them.
        assert_eq!(hand_over(&store, &clock).await.len(), KEYS);
    });
}

/// A successor that replies to one request, and then reads nothing.
fn reply_once(store: &Arc<MovableStore>, mut stream: UnixStream, numbers: u64) -> UnixStream {
    let mut slots = HashMap::new();
    let mut left = numbers;
    while left > 0 {
        let RequestFrame { number, request } = message::receive(&stream).expect("a request");
        let reply = match request {
            HandoverRequest::Keys(KeysPiece(piece)) => {
                store.read_keys(&piece, &mut slots).expect("keys");
                continue;
            }
            HandoverRequest::Decide(owned) => {
                let verdicts = store.decide_now(&owned.batch());
                HandoverReply::Verdicts(verdicts.iter().map(OwnedVerdict::of).collect())
            }
            HandoverRequest::Settle(_) => HandoverReply::Done,
            other => panic!("{other:?}"),
        };
        let mut sent = Vec::new();
        message::push(&mut sent, &ReplyFrame { number, reply });
        stream.write_all(&sent).expect("it is read");
        left -= 1;
    }
    stream
}

#[test]
fn slots_of_a_successor_that_is_gone_stay_taken() {
    run(async {
        let (clock, rules, slots) = (clock(), rules(), two_slots());
        let store = filled(&clock, &rules[0]);
        let to = Arc::new(super::store(&clock));
        // Two at a time, under three keys.
        let batch = |key: u128| one(charge(&slots, 1_000_001 + 2 * key, 0));
        let release = |key: u128| [Settlement::Release(batch(key).charges[0].key)];
        for key in [0, 0, 1, 1, 2] {
            assert!(store.decide(&batch(key)).await.expect("it is here")[0].passes());
        }
        let (ours, theirs) = UnixStream::pair().expect("two ends");
        let frozen = FrozenCounts::begin(&store, TransferVersion::V4);
        let moving = task::spawn_blocking(move || frozen.move_in_pieces(ours, 100));
        let replying = task::spawn_blocking(move || reply_once(&to, theirs, 3));
        // One more is taken there, one is given back, and one is refused.
        assert!(store.decide(&batch(2)).await.expect("it replies")[0].passes());
        store.settle(&release(1)).await.expect("it replies");
        assert!(!store.decide(&batch(0)).await.expect("it replies")[0].passes());
        drop(replying.await.expect("no panic"));
        assert!(moving.await.expect("no panic").is_err());
        let mut passed = Vec::new();
        for key in 0..3 {
            passed.push(store.look(&batch(key)).await.expect("it is here")[0].passes());
            store.settle(&release(key)).await.expect("it is here");
            assert!(store.look(&batch(key)).await.expect("it is here")[0].passes());
        }
        assert_eq!(passed, [false, true, false]);
    });
}

#[test]
fn what_has_arrived_from_a_predecessor_that_is_gone_counts_here() {
    run(async {
        let (clock, rules) = (clock(), rules());
        let from = filled(&clock, &rules[0]);
        let mut to = memory(&clock);
        to.hash_with(from.secret());
        let to = Arc::new(MovableStore::from(to));
        let (ours, theirs) = UnixStream::pair().expect("two ends");
        let taking = task::spawn_blocking({
            let to = Arc::clone(&to);
            move || (ReceivedCounts::receive(&to, &theirs, || unreachable!("no socket is passed")), theirs)
        });
        let giving = task::spawn_blocking({
            let from = Arc::clone(&from);
            move || {
                let frozen = FrozenCounts::begin(&from, TransferVersion::V4);
                frozen.send(&ours, |_| Ok(())).expect("it is read");
                let mut some = Vec::new();
                from.take_keys(&mut 0, 5000, &mut some, &mut HashMap::new());
                let mut sent = Vec::new();
                let request = HandoverRequest::Keys(KeysPiece(some));
                message::push(&mut sent, &RequestFrame { number: 1, request });
                (&ours).write_all(&sent).expect("it is read");
            }
        });
        let (received, theirs) = taking.await.expect("no panic");
        let arrival = received.expect("it came whole").begin(theirs, oneshot::channel().0);
        giving.await.expect("no panic");
        let ended = arrival.complete(Duration::from_secs(60)).await.expect_err("it is gone").kind();
        assert_eq!(ended, io::ErrorKind::UnexpectedEof);
        assert!(!to.is_empty() && to.len() + from.len() == KEYS, "{} and {}", to.len(), from.len());
    });
}

#[test]
fn both_processes_together_remember_no_more_keys_than_one() {
    let (clock, rules) = (clock(), rules());
    // The keys of this test fall into every other shard.
    let settings = MemorySettings { max_keys: 2 * KEYS, max_sessions: 1000, snapshot: None };
    let new = || MemoryStore::new(&settings, Clock::Manual(clock.clone()));
    let from = Arc::new(MovableStore::from(new()));
    for key in 0..2 * KEYS as u128 {
        from.decide_now(&one(charge(&rules[0], 2 * key + 1, 0)));
    }
    assert_eq!(from.len(), KEYS);
    let (begun, takeover) = mpsc::channel();
    let asking = thread::spawn({
        let (from, rule) = (Arc::clone(&from), rules[0].clone());
        move || {
            let to: Arc<MovableStore> = takeover.recv().expect("it begins");
            let (mut most, mut asked) = (0, 0);
            while !from.is_empty() {
                // New keys, each beside one that may not have moved yet.
                let charges = [charge(&rule, 900_001 + 2 * asked, 0), charge(&rule, 2 * asked + 1, 0)];
                let batch = Batch { charges: charges.into_iter().collect(), ..Batch::default() };
                assert!(run(from.decide(&batch)).expect("the successor replies").iter().all(Verdict::passes));
                // In this order: no key is seen in both.
                most = most.max(to.len() + from.len());
                asked += 1;
            }
            (most, asked)
        }
    });
    run(async {
        let takeover = begin(&from, new(), TransferVersion::V4, 1).await;
        begun.send(Arc::clone(&takeover.to)).expect("it is awaited");
        let to = takeover.complete().await;
        while !asking.is_finished() {
            task::yield_now().await;
        }
        let (most, asked) = asking.join().expect("no panic");
        assert!(asked > 20, "{asked}");
        // A new key may be the first of its shard, where none can make way for it.
        assert!(most <= KEYS + 16 && to.len() <= KEYS + 16, "{most} and {}", to.len());
        assert!(from.is_empty());
    });
}
