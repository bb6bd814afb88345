use crate::admin::shared::tell::*;
use crate::record::RequestRecord;
use crate::record::kept_requests::{DecisionFacts, samples};

const ATTACKER: [u8; 4] = [203, 0, 113, 1];

const OWNER: [u8; 4] = [198, 51, 100, 7];

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + seconds * 1_000_000)
}

fn keep(kept: &KeptRequests, number: usize, client: [u8; 4], seconds: u64) {
    let facts = DecisionFacts { came: at(seconds), decided: at(seconds), limit: None, ..samples::facts() };
    let id = format!("{number:08x}");
    let record = RequestRecord { request_id: &id, identity: samples::identity(client), ..samples::record() };
    kept.keep(samples::kept(&samples::policy(&[]), facts, [], &record));
}

fn names(untold: &Untold) -> Vec<String> {
    untold.fields().map(|field| field.name).collect()
}

/// Tells all that is new, in one batch after another. Returns how many were told, and what was removed.
fn tell_all(told: &mut ToldStories, kept: &KeptRequests, now: Timestamp) -> (usize, Vec<String>) {
    let (mut count, mut removed) = (0, Vec::new());
    told.look(kept);
    loop {
        let untold = told.next(kept, &[]);
        assert!(untold.requests.len() <= MOST_AT_ONCE);
        count += untold.requests.len();
        told.note(untold);
        let surplus = told.take_surplus(now);
        assert!(surplus.is_empty() || surplus.len() > SLACK, "{} at once", surplus.len());
        removed.extend(surplus);
        assert!(told.told.len() <= MOST_KEPT + SLACK);
        assert_eq!(told.of_client.values().sum::<usize>(), told.told.len());
        if !told.has_backlog() {
            return (count, removed);
        }
    }
}

#[test]
fn what_is_new_is_told_once_and_what_is_asked_for_again() {
    let (kept, mut told) = (KeptRequests::default(), ToldStories::default());
    keep(&kept, 1, OWNER, 0);
    keep(&kept, 2, OWNER, 1);
    told.look(&kept);
    let untold = told.next(&kept, &["00000001".into(), "unknown".into()]);
    assert_eq!(names(&untold), ["request/00000001", "request/00000002"]);
    assert!(!told.was_told_within(Duration::from_secs(4)));
    told.note(untold);
    assert!(told.was_told_within(Duration::from_secs(4)));
    told.look(&kept);
    assert!(!told.has_backlog() && names(&told.next(&kept, &[])).is_empty());
    let asked = told.next(&kept, &["00000001".into()]);
    assert_eq!(names(&asked), ["request/00000001"]);
    told.note(asked);
    assert_eq!((told.told.len(), told.of_client[&IpAddr::from(OWNER)]), (2, 2));
    told.forget();
    told.look(&kept);
    assert_eq!(names(&told.next(&kept, &[])).len(), 2);
}

#[test]
fn all_of_a_burst_is_told_the_newest_first() {
    let (kept, mut told) = (KeptRequests::default(), ToldStories::default());
    keep(&kept, 0, OWNER, 0);
    (1..30_000).for_each(|number| keep(&kept, number, ATTACKER, 1));
    told.look(&kept);
    let first = names(&told.next(&kept, &[]));
    assert_eq!(first[..3], [29_999, 0, 29_998].map(|number| story(&format!("{number:08x}"))));
    // What was not written is found again.
    let (count, _) = tell_all(&mut told, &kept, at(2));
    assert!(count >= 10_001, "{count}");
    let is_told = |number: usize| told.told.values().any(|told| *told.id == *format!("{number:08x}"));
    assert!(is_told(0) && (20_000..30_000).step_by(97).all(is_told));
    assert_eq!(tell_all(&mut told, &kept, at(2)), (0, Vec::new()));
}

#[test]
fn a_flood_that_goes_on_stays_within_bounds_and_pushes_out_its_own_first() {
    let (kept, mut told) = (KeptRequests::default(), ToldStories::default());
    keep(&kept, 0, OWNER, 0);
    let (mut count, mut removed) = (0, Vec::new());
    for round in 0..12 {
        (0..3000).for_each(|number| keep(&kept, round * 3000 + number + 1, ATTACKER, 1));
        let (more, surplus) = tell_all(&mut told, &kept, at(2));
        count += more;
        removed.extend(surplus);
    }
    assert_eq!((count, removed.len() + told.told.len()), (36_001, 36_001));
    assert!(told.told.values().any(|told| told.client == IpAddr::from(OWNER)));
    assert!(told.done.len() < 15_000, "what has left the ring is forgotten");
    // What was removed is not told again while it is kept here, and the newest ones are never removed.
    let is_removed: HashSet<_> = removed.into_iter().collect();
    assert!((26_001..=36_000).all(|number| !is_removed.contains(&story(&format!("{number:08x}")))));
}

#[test]
fn a_flood_of_many_clients_stays_within_bounds_too() {
    let (kept, mut told) = (KeptRequests::default(), ToldStories::default());
    for round in 0..4_u32 {
        for number in round * 9000..(round + 1) * 9000 {
            keep(&kept, number as usize, number.to_be_bytes(), 1);
        }
        tell_all(&mut told, &kept, at(2));
    }
    assert!((26_000..36_000).all(|number| told.told.contains_key(&number)));
}

#[test]
fn what_redis_has_lost_is_told_again_and_counted_once() {
    let (kept, mut told) = (KeptRequests::default(), ToldStories::default());
    (0..12_000).for_each(|number| keep(&kept, number, ATTACKER, 1));
    tell_all(&mut told, &kept, at(2));
    told.forget();
    let (count, _) = tell_all(&mut told, &kept, at(2));
    assert!(count >= 10_000 && told.told.len() == count, "{count} of {}", told.told.len());
}

#[test]
fn what_is_older_than_an_hour_goes_many_at_once() {
    let (kept, mut told) = (KeptRequests::default(), ToldStories::default());
    for minute in 0..60 {
        keep(&kept, minute, OWNER, minute as u64 * 60);
    }
    told.look(&kept);
    let untold = told.next(&kept, &[]);
    told.note(untold);
    assert!(told.take_surplus(at(80 * 60)).is_empty());
    assert_eq!(told.take_surplus(at(80 * 60 + 1)).len(), 21);
    assert!(told.take_surplus(at(80 * 60 + 1)).is_empty());
    assert_eq!(told.take_surplus(at(24 * 3600)).len(), 39);
    assert!(told.of_client.is_empty());
    told.look(&kept);
    assert!(!told.has_backlog());
}
