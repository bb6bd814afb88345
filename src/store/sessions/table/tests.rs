use std::collections::HashMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::rules::decision::SessionHashes;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000) + Duration::from_secs(seconds)
}

fn hash(number: u128) -> KeyHash {
    KeyHash(number)
}

fn sign_in(account: u128, keep: u64, learned: &[u128], carried: &[u128]) -> SignIn {
    let hashes = |numbers: &[u128]| numbers.iter().copied().map(KeyHash).collect::<SessionHashes>();
    SignIn {
        account: hash(account),
        keep: Duration::from_secs(keep),
        learned: hashes(learned),
        carried: hashes(carried),
    }
}

#[test]
fn a_session_is_its_accounts_until_it_was_not_used_for_so_long() {
    let sessions = Sessions::new(100, at(0));
    assert!(sessions.is_empty() && sessions.account(hash(1), at(0)).is_none());
    assert!(sessions.sign_in(&sign_in(7, 10, &[1, 2], &[]), at(0)));
    for moment in [9, 18, 27] {
        assert_eq!(sessions.account(hash(1), at(moment)), Some(hash(7)), "{moment}");
    }
    assert_eq!(sessions.account(hash(2), at(10)), None, "it was not used");
    assert_eq!(sessions.account(hash(1), at(37)), None);
    assert!(sessions.is_empty(), "what was found to be over is gone");
}

#[test]
fn a_success_of_another_account_teaches_nothing() {
    let sessions = Sessions::new(100, at(0));
    assert!(sessions.sign_in(&sign_in(7, 10, &[1], &[5]), at(0)));
    assert!(!sessions.sign_in(&sign_in(8, 10, &[2], &[9, 1]), at(1)));
    assert_eq!((sessions.account(hash(2), at(1)), sessions.count()), (None, 1));
    assert!(sessions.sign_in(&sign_in(7, 10, &[2], &[1]), at(1)), "it is the account's own");
    sessions.apply(SessionChange::Forget(hash(1)), at(2));
    sessions.apply(SessionChange::Forget(hash(2)), at(2));
    assert!(sessions.sign_in(&sign_in(8, 10, &[1], &[1]), at(2)), "it has ended");
    assert!(sessions.sign_in(&sign_in(9, 10, &[3], &[1]), at(12)), "its time is over");
}

#[test]
fn a_renewed_session_is_the_same_accounts() {
    let sessions = Sessions::new(100, at(0));
    sessions.apply(SessionChange::Renew { old: hash(1), new: hash(2) }, at(0));
    assert!(sessions.is_empty());
    sessions.sign_in(&sign_in(7, 10, &[1], &[]), at(0));
    sessions.apply(SessionChange::Renew { old: hash(1), new: hash(2) }, at(9));
    assert_eq!(sessions.account(hash(2), at(18)), Some(hash(7)));
    assert_eq!(sessions.account(hash(1), at(18)), None);
}

#[test]
fn a_flood_of_new_sessions_leaves_those_that_are_used() {
    let sessions = Sessions::new(1000, at(0));
    for number in 0..100 {
        sessions.sign_in(&sign_in(7, 1_000_000, &[number], &[]), at(0));
    }
    for flood in 0..10_000_u64 {
        sessions.sign_in(&sign_in(8, 1_000_000, &[1000 + u128::from(flood)], &[]), at(1 + flood));
        if flood % 500 == 0 {
            assert!((0..50).all(|number| sessions.account(hash(number), at(1 + flood)).is_some()));
        }
    }
    assert_eq!(sessions.count(), 1000);
    assert!((50..100).all(|number| sessions.account(hash(number), at(20_000)).is_none()));
}

#[test]
fn sessions_are_found_in_all_shards_and_removed_when_their_time_is_over() {
    let sessions = Sessions::new(100_000, at(0));
    for number in 0..50_000 {
        sessions.sign_in(&sign_in(number, 60, &[1_000_000 + number], &[]), at(0));
    }
    assert!((0..50_000).all(|number| sessions.account(hash(1_000_000 + number), at(1)) == Some(hash(number))));
    assert!(sessions.shards.iter().all(|shard| shard.0.lock().len() > 100));
    for _ in 0..sessions.shards.len() {
        sessions.remove_expired(at(61));
    }
    assert!(sessions.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    SignIn {
        account: u8,
        keep: u64,
        learned: Vec<u8>,
        carried: Vec<u8>,
    },
    Use(u8),
    Renew(u8, u8),
    /// A session, its account, and how long it is remembered in seconds.
    Learn(u8, u8, u64),
    Forget(u8),
    Wait(u64),
    Sweep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let session = 0..24_u8;
    vec(
        prop_oneof![
            4 => (0..4_u8, prop_oneof![Just(5_u64), Just(60), Just(3600)], vec(session.clone(), 0..2), vec(session.clone(), 0..3))
                .prop_map(|(account, keep, learned, carried)| Step::SignIn { account, keep, learned, carried }),
            4 => session.clone().prop_map(Step::Use),
            2 => (session.clone(), session.clone()).prop_map(|(old, new)| Step::Renew(old, new)),
            1 => (session.clone(), 0..4_u8, prop_oneof![Just(5_u64), Just(60)])
                .prop_map(|(session, account, keep)| Step::Learn(session, account, keep)),
            1 => session.prop_map(Step::Forget),
            3 => (1..70_u64).prop_map(Step::Wait),
            1 => Just(Step::Sweep),
        ],
        0..200,
    )
}

/// What the table promises, in the simplest form: account, time and last use of each session.
#[derive(Default)]
struct Model {
    sessions: HashMap<u8, (u8, u64, u64)>,
    most: usize,
}

impl Model {
    fn account(&self, session: u8, now: u64) -> Option<u8> {
        self.sessions.get(&session).filter(|(_, keep, used)| now < used + keep).map(|(account, ..)| *account)
    }

    fn learn(&mut self, session: u8, account: u8, keep: u64, now: u64) {
        self.sessions.insert(session, (account, keep, now));
        if self.sessions.len() > self.most {
            let oldest = self.sessions.iter().min_by_key(|(_, (_, _, used))| *used).map(|(session, _)| *session);
            self.sessions.remove(&oldest.expect("there is one"));
        }
    }
}

proptest! {
    #[test]
    fn the_table_is_a_map_that_forgets_the_longest_unused(steps in steps(), most in prop_oneof![Just(1000_usize), 1..20_usize]) {
        let sessions = Sessions::new(most, at(0));
        let mut model = Model { most, ..Model::default() };
        let mut now = 1;
        for step in steps {
            // No two uses are in one second, so that the order of uses is known.
            now += 1;
            match step {
                Step::SignIn { account, keep, learned, carried } => {
                    sessions.remove_expired(at(now));
                    model.sessions.retain(|_, (_, keep, used)| now < *used + *keep);
                    let own = carried.iter().all(|session| model.account(*session, now).is_none_or(|of| of == account));
                    let wide = |numbers: &[u8]| numbers.iter().map(|number| u128::from(*number)).collect::<Vec<_>>();
                    let of = sign_in(account.into(), keep, &wide(&learned), &wide(&carried));
                    prop_assert_eq!(sessions.sign_in(&of, at(now)), own);
                    learned.iter().filter(|_| own).for_each(|session| model.learn(*session, account, keep, now));
                }
                Step::Use(session) => {
                    let expected = model.account(session, now);
                    prop_assert_eq!(sessions.account(hash(session.into()), at(now)), expected.map(|of| hash(of.into())));
                    if expected.is_some() {
                        model.sessions.get_mut(&session).unwrap().2 = now;
                    }
                }
                Step::Renew(old, new) => {
                    sessions.remove_expired(at(now));
                    model.sessions.retain(|_, (_, keep, used)| now < *used + *keep);
                    sessions.apply(SessionChange::Renew { old: hash(old.into()), new: hash(new.into()) }, at(now));
                    if let Some((account, keep, _)) = model.sessions.get(&old).copied() {
                        model.learn(new, account, keep, now);
                    }
                }
                Step::Learn(session, account, keep) => {
                    sessions.remove_expired(at(now));
                    model.sessions.retain(|_, (_, keep, used)| now < *used + *keep);
                    let (session_hash, account_hash) = (hash(session.into()), hash(account.into()));
                    let change =
                        SessionChange::Learn { session: session_hash, account: account_hash, keep: Duration::from_secs(keep) };
                    sessions.apply(change, at(now));
                    let known = model.sessions.get(&session).map(|(account, keep, _)| (*account, *keep));
                    let (account, keep) = known.unwrap_or((account, keep));
                    model.learn(session, account, keep, now);
                }
                Step::Forget(session) => {
                    sessions.apply(SessionChange::Forget(hash(session.into())), at(now));
                    model.sessions.remove(&session);
                }
                Step::Wait(seconds) => now += seconds,
                Step::Sweep => {
                    sessions.remove_expired(at(now));
                    model.sessions.retain(|_, (_, keep, used)| now < *used + *keep);
                    prop_assert_eq!(sessions.count(), model.sessions.len());
                }
            }
            prop_assert!(sessions.count() <= most);
        }
        for session in 0..24 {
            let known = sessions.find(hash(session.into()), at(now)).map(|known| known.account);
            prop_assert_eq!(known, model.account(session, now).map(|of| hash(of.into())));
        }
    }
}
