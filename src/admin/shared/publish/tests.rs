use crate::admin::shared::publish::*;
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

fn names(batch: &StoryBatch) -> Vec<String> {
    batch.fields().map(|field| field.name).collect()
}

/// Publishes all that is new, in one batch after another. Returns how many stories were published, and what was removed.
fn publish_all(stories: &mut PublishedStories, kept: &KeptRequests, now: Timestamp) -> (usize, Vec<String>) {
    let (mut count, mut removed) = (0, Vec::new());
    stories.look(kept);
    loop {
        let batch = stories.next(kept, &[]);
        assert!(batch.requests.len() <= MOST_AT_ONCE);
        count += batch.requests.len();
        stories.note(batch);
        let surplus = stories.take_surplus(now);
        assert!(surplus.is_empty() || surplus.len() > SLACK, "{} at once", surplus.len());
        removed.extend(surplus);
        assert!(stories.published.len() <= MOST_KEPT + SLACK);
        assert_eq!(stories.of_client.values().sum::<usize>(), stories.published.len());
        if !stories.has_backlog() {
            return (count, removed);
        }
    }
}

#[test]
fn what_is_new_is_published_once_and_what_is_asked_for_again() {
    let (kept, mut stories) = (KeptRequests::default(), PublishedStories::default());
    keep(&kept, 1, OWNER, 0);
    keep(&kept, 2, OWNER, 1);
    stories.look(&kept);
    let batch = stories.next(&kept, &["00000001".into(), "unknown".into()]);
    assert_eq!(names(&batch), ["request/00000001", "request/00000002"]);
    assert!(!stories.were_published_within(Duration::from_secs(4)));
    stories.note(batch);
    assert!(stories.were_published_within(Duration::from_secs(4)));
    stories.look(&kept);
    assert!(!stories.has_backlog() && names(&stories.next(&kept, &[])).is_empty());
    let asked = stories.next(&kept, &["00000001".into()]);
    assert_eq!(names(&asked), ["request/00000001"]);
    stories.note(asked);
    assert_eq!((stories.published.len(), stories.of_client[&IpAddr::from(OWNER)]), (2, 2));
    stories.forget();
    stories.look(&kept);
    assert_eq!(names(&stories.next(&kept, &[])).len(), 2);
}

#[test]
fn all_of_a_burst_is_published_the_newest_first() {
    let (kept, mut stories) = (KeptRequests::default(), PublishedStories::default());
    keep(&kept, 0, OWNER, 0);
    (1..30_000).for_each(|number| keep(&kept, number, ATTACKER, 1));
    stories.look(&kept);
    let first = names(&stories.next(&kept, &[]));
    assert_eq!(first[..3], [29_999, 0, 29_998].map(|number| story(&format!("{number:08x}"))));
    // What was not written is found again.
    let (count, _) = publish_all(&mut stories, &kept, at(2));
    assert!(count >= 10_001, "{count}");
    let is_published = |number: usize| stories.published.values().any(|story| *story.id == *format!("{number:08x}"));
    assert!(is_published(0) && (20_000..30_000).step_by(97).all(is_published));
    assert_eq!(publish_all(&mut stories, &kept, at(2)), (0, Vec::new()));
}

#[test]
fn a_flood_that_goes_on_stays_within_bounds_and_pushes_out_its_own_first() {
    let (kept, mut stories) = (KeptRequests::default(), PublishedStories::default());
    keep(&kept, 0, OWNER, 0);
    let (mut count, mut removed) = (0, Vec::new());
    for round in 0..12 {
        (0..3000).for_each(|number| keep(&kept, round * 3000 + number + 1, ATTACKER, 1));
        let (more, surplus) = publish_all(&mut stories, &kept, at(2));
        count += more;
        removed.extend(surplus);
    }
    assert_eq!((count, removed.len() + stories.published.len()), (36_001, 36_001));
    assert!(stories.published.values().any(|story| story.client == IpAddr::from(OWNER)));
    assert!(stories.done.len() < 15_000, "what has left the ring is forgotten");
    // What was removed is not published again while it is kept here, and the newest ones are never removed.
    let is_removed: HashSet<_> = removed.into_iter().collect();
    assert!((26_001..=36_000).all(|number| !is_removed.contains(&story(&format!("{number:08x}")))));
}

#[test]
fn a_flood_of_many_clients_stays_within_bounds_too() {
    let (kept, mut stories) = (KeptRequests::default(), PublishedStories::default());
    for round in 0..4_u32 {
        for number in round * 9000..(round + 1) * 9000 {
            keep(&kept, number as usize, number.to_be_bytes(), 1);
        }
        publish_all(&mut stories, &kept, at(2));
    }
    assert!((26_000..36_000).all(|number| stories.published.contains_key(&number)));
}

#[test]
fn what_redis_has_lost_is_published_again_and_counted_once() {
    let (kept, mut stories) = (KeptRequests::default(), PublishedStories::default());
    (0..12_000).for_each(|number| keep(&kept, number, ATTACKER, 1));
    publish_all(&mut stories, &kept, at(2));
    stories.forget();
    let (count, _) = publish_all(&mut stories, &kept, at(2));
    assert!(count >= 10_000 && stories.published.len() == count, "{count} of {}", stories.published.len());
}

#[test]
fn what_is_older_than_an_hour_goes_many_at_once() {
    let (kept, mut stories) = (KeptRequests::default(), PublishedStories::default());
    for minute in 0..60 {
        keep(&kept, minute, OWNER, minute as u64 * 60);
    }
    stories.look(&kept);
    let batch = stories.next(&kept, &[]);
    stories.note(batch);
    assert!(stories.take_surplus(at(80 * 60)).is_empty());
    assert_eq!(stories.take_surplus(at(80 * 60 + 1)).len(), 21);
    assert!(stories.take_surplus(at(80 * 60 + 1)).is_empty());
    assert_eq!(stories.take_surplus(at(24 * 3600)).len(), 39);
    assert!(stories.of_client.is_empty());
    stories.look(&kept);
    assert!(!stories.has_backlog());
}
