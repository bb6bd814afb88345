use super::*;
use crate::rules::key::DisplayKey;
use crate::words::clock::ManualClock;

const SECOND: Duration = Duration::from_secs(1);

fn bans() -> (Bans, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_micros(1_000_000_000));
    (Bans::new(Clock::Manual(clock.clone())), clock)
}

fn key(number: u128) -> BanSubject {
    BanSubject::Key { key: KeyHash(number), limit: "login".into(), named: DisplayKey::default(), client: None }
}

fn address(text: &str) -> BanSubject {
    BanSubject::Address(text.parse().expect("a network"))
}

fn ladder(seconds: &[u64]) -> Ladder {
    Ladder::new(seconds.iter().map(|seconds| Duration::from_secs(*seconds)).collect()).expect("a length")
}

#[test]
fn a_burst_is_one_step_and_each_further_ban_is_the_next() {
    let (bans, clock) = bans();
    let ladder = ladder(&[10, 60]);
    assert_eq!(bans.left(KeyHash(7)), None);
    let (first, begins) = bans.ban_by_limit(key(7), &ladder, &"".into());
    assert!(begins);
    for _ in 0..3 {
        assert_eq!(bans.ban_by_limit(key(7), &ladder, &"".into()), (first.clone(), false));
    }
    clock.advance(4 * SECOND);
    assert_eq!(bans.left(KeyHash(7)), Some(6 * SECOND));
    assert_eq!(bans.left(KeyHash(8)), None);
    clock.advance(6 * SECOND);
    assert_eq!((bans.left(KeyHash(7)), bans.count()), (None, 0));
    bans.ban_by_limit(key(7), &ladder, &"".into());
    assert_eq!(bans.left(KeyHash(7)), Some(60 * SECOND));
}

#[test]
fn steps_outlive_the_ban_and_are_reset_after_quiet() {
    let (bans, clock) = bans();
    let ladder = ladder(&[10, 60]);
    bans.ban_by_limit(key(7), &ladder, &"".into());
    clock.advance(19 * SECOND);
    bans.remove_expired();
    assert!(bans.has_keys());
    clock.advance(SECOND);
    bans.remove_expired();
    assert!(!bans.has_keys());
    assert_eq!(bans.ban_by_limit(key(7), &ladder, &"".into()).0.length, 10 * SECOND);
}

#[test]
fn addresses_are_banned_by_network_and_freed_by_time_or_operator() {
    let (bans, clock) = bans();
    let left = |bans: &Bans, text: &str| bans.of_address(text.parse().expect("an address")).map(|(_, left)| left);
    let record = bans.ban_by_operator(address("198.51.100.0/24"), 10 * SECOND, "scans".into()).expect("room");
    assert_eq!(left(&bans, "198.51.100.9"), Some(10 * SECOND));
    assert_eq!(left(&bans, "198.51.101.9"), None);
    assert_eq!(bans.list(), std::slice::from_ref(&record.ban));
    assert_eq!(bans.lift(record.ban.id), Some(record.ban.clone()));
    assert_eq!((left(&bans, "198.51.100.9"), bans.lift(record.ban.id)), (None, None));
    bans.ban_by_operator(address("198.51.100.0/24"), 10 * SECOND, "scans".into()).expect("room");
    clock.advance(10 * SECOND);
    assert_eq!((left(&bans, "198.51.100.9"), bans.list(), bans.lift(record.ban.id)), (None, Vec::new(), None));
}

#[test]
fn a_ban_by_an_operator_is_no_step() {
    let (bans, clock) = bans();
    bans.ban_by_operator(key(7), 5 * SECOND, "".into()).expect("room");
    assert_eq!(bans.left(KeyHash(7)), Some(5 * SECOND));
    clock.advance(5 * SECOND);
    assert_eq!(bans.ban_by_limit(key(7), &ladder(&[10, 60]), &"".into()).0.length, 10 * SECOND);
}

#[test]
fn when_full_bans_that_end_first_go_but_never_one_by_an_operator() {
    let (bans, _clock) = bans();
    bans.ban_by_operator(address("203.0.113.1/32"), SECOND, "".into()).expect("room");
    for number in 0..u128::try_from(MOST_BANS).expect("a number") - 1 {
        bans.ban_by_limit(key(number), &ladder(&[if number == 0 { 10 } else { 60 }]), &"".into());
    }
    assert_eq!(bans.count(), MOST_BANS);
    bans.ban_by_limit(key(u128::MAX), &ladder(&[3600]), &"".into());
    assert_eq!(bans.count(), MOST_BANS);
    assert_eq!(bans.left(KeyHash(0)), None, "it would have ended first");
    assert!(bans.left(KeyHash(1)).is_some() && bans.left(KeyHash(u128::MAX)).is_some());
    assert!(bans.of_address([203, 0, 113, 1].into()).is_some());
}

#[test]
fn a_ban_that_redis_lost_goes_but_one_it_never_had_stays() {
    let (bans, _clock) = bans();
    let (sent, _) = bans.ban_by_limit(key(1), &ladder(&[10]), &"".into());
    bans.insert(sent);
    bans.ban_by_limit(key(2), &ladder(&[10]), &"".into());
    let mark = bans.mark();
    bans.ban_by_limit(key(3), &ladder(&[10]), &"".into());
    assert_eq!(bans.unsent().len(), 2);
    bans.remove_unchanged_since(mark);
    assert_eq!([1, 2, 3].map(|number| bans.left(KeyHash(number)).is_some()), [false, true, true]);
}
