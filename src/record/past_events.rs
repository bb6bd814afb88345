//! The newest bans, unbans and reloads, for those who ask later what happened.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::Event;
use super::event::EventKind;
use crate::clock::Timestamp;

/// Keeps so many of each kind that a flood of bans does not push out a reload. Denials and delays are not kept here: the
/// counts by key and the stories of requests tell of them.
#[derive(Debug, Default)]
pub struct PastEvents {
    /// The oldest first.
    bans: Mutex<VecDeque<Arc<Event>>>,
    reloads: Mutex<VecDeque<Arc<Event>>>,
}

impl PastEvents {
    /// Keeps an event, unless it tells of a ban what is known already: of a ban that several gateways share, this one may
    /// hear twice.
    pub(super) fn keep(&self, event: &Arc<Event>) {
        match event.kind {
            EventKind::Ban | EventKind::Unban => {
                let mut bans = self.bans.lock();
                let known = bans.iter().rev().find(|known| known.ban == event.ban);
                if known.is_none_or(|known| !tells_the_same(known, event)) {
                    push(&mut bans, event, MOST_BANS);
                }
            }
            EventKind::Reload => push(&mut self.reloads.lock(), event, MOST_RELOADS),
            EventKind::Denial | EventKind::Delay => {}
        }
    }

    /// What happened since that moment and is still known, the newest first.
    pub fn since(&self, moment: Timestamp) -> Vec<Arc<Event>> {
        let mut events: Vec<_> = self.bans.lock().iter().chain(&*self.reloads.lock()).map(Arc::clone).collect();
        events.retain(|event| event.time >= moment);
        events.sort_by_key(|event| std::cmp::Reverse(event.time));
        events
    }
}

/// Two events of one ban.
fn tells_the_same(one: &Event, other: &Event) -> bool {
    let is_same_end = match (one.until, other.until) {
        (Some(one), Some(other)) => one.since(other).max(other.since(one)) < LONGEST_DELIVERY,
        _ => one.until == other.until,
    };
    one.kind == other.kind && is_same_end
}

fn push(kept: &mut VecDeque<Arc<Event>>, event: &Arc<Event>, most: usize) {
    if kept.len() == most {
        kept.pop_front();
    }
    kept.push_back(Arc::clone(event));
}

/// A few hundred bytes each.
pub const MOST_BANS: usize = 500;
pub const MOST_RELOADS: usize = 100;

/// The end of a ban that another gateway has set shifts by the way of its message.
const LONGEST_DELIVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, ban: usize, second: u64) -> Arc<Event> {
        let time = Timestamp::from_micros(second * 1_000_000);
        let event = Event { time, ban: Some(ban.to_string().into()), ..Event::new(kind) };
        Arc::new(if kind == EventKind::Ban { event.lasting(Duration::from_secs(60)) } else { event })
    }

    #[test]
    fn many_bans_push_out_the_oldest_bans_and_no_reload() {
        let past = PastEvents::default();
        past.keep(&event(EventKind::Reload, 0, 1));
        for ban in 0..MOST_BANS + 10 {
            past.keep(&event(EventKind::Ban, ban, 2 + ban as u64));
        }
        let all = past.since(Timestamp::EPOCH);
        assert_eq!(all.len(), MOST_BANS + 1);
        assert_eq!(all[0].ban.as_deref(), Some("509"));
        assert_eq!(all[MOST_BANS - 1].ban.as_deref(), Some("10"));
        assert_eq!(all[MOST_BANS].kind, EventKind::Reload);
        assert_eq!(past.since(Timestamp::from_micros(510_000_000)).len(), 2);
    }

    #[test]
    fn what_is_known_of_a_ban_is_kept_once() {
        let past = PastEvents::default();
        let [first, again] = [1, 100].map(|second| event(EventKind::Ban, 7, second));
        let echo = Arc::new(Event { time: first.time + Duration::from_millis(900), ..Event::clone(&first) });
        for event in [&first, &echo, &event(EventKind::Unban, 7, 3), &event(EventKind::Unban, 7, 4), &again] {
            past.keep(event);
        }
        let kinds: Vec<_> = past.since(Timestamp::EPOCH).iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Ban, EventKind::Unban, EventKind::Ban]);
    }

    #[test]
    fn denials_are_told_elsewhere() {
        let past = PastEvents::default();
        past.keep(&event(EventKind::Denial, 1, 1));
        past.keep(&event(EventKind::Delay, 1, 1));
        assert!(past.since(Timestamp::EPOCH).is_empty());
    }
}
