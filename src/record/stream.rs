//! The live stream: everything that happens, for whoever listens while it does.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::event::Event;

/// Where one can listen. Whoever is slow loses what they had no time for, and holds up nobody.
#[derive(Debug)]
pub struct Stream {
    sender: broadcast::Sender<(u64, Arc<Event>)>,
    /// The number of the latest entry.
    latest: Mutex<u64>,
    places: Arc<Semaphore>,
    ended: Mutex<CancellationToken>,
}

/// One listener.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<(u64, Arc<Event>)>,
    ended: CancellationToken,
    _place: OwnedSemaphorePermit,
}

/// What a listener is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Numbered upwards from 1, since the process began.
    Event(u64, Arc<Event>),
    /// So many were lost: the listener was too slow.
    Lost(u64),
}

/// Everybody has a seat for a dashboard; a crowd is a mistake.
pub const MOST_LISTENERS: usize = 64;

/// How far a listener may fall behind.
const BEHIND: usize = 1024;

impl Stream {
    pub(super) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(BEHIND),
            latest: Mutex::new(0),
            places: Arc::new(Semaphore::new(MOST_LISTENERS)),
            ended: Mutex::new(CancellationToken::new()),
        }
    }

    /// `None`: every place is taken.
    pub fn subscribe(&self) -> Option<Subscription> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Subscription { receiver: self.sender.subscribe(), ended: self.ended.lock().clone(), _place: place })
    }

    /// Ends for everybody who listens now. Others may come after them.
    pub fn hang_up(&self) {
        std::mem::take(&mut *self.ended.lock()).cancel();
    }

    pub(super) fn has_listeners(&self) -> bool {
        // Each has a place; to count receivers is to lock them.
        self.places.available_permits() < MOST_LISTENERS
    }

    pub(super) fn tell(&self, event: &Arc<Event>) {
        if self.has_listeners() {
            // Held while it is sent: numbers arrive in their order.
            let mut latest = self.latest.lock();
            *latest += 1;
            // The last listener may just have left.
            drop(self.sender.send((*latest, Arc::clone(event))));
        }
    }
}

impl Subscription {
    /// What comes next; `None`: it has ended.
    pub async fn next(&mut self) -> Option<Told> {
        tokio::select! {
            told = self.receiver.recv() => match told {
                Ok((number, event)) => Some(Told::Event(number, event)),
                Err(RecvError::Lagged(lost)) => Some(Told::Lost(lost)),
                Err(RecvError::Closed) => None,
            },
            () = self.ended.cancelled() => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::event::EventKind;

    #[tokio::test]
    async fn who_falls_behind_is_told_how_much_was_lost_and_goes_on_with_the_oldest_there_is() {
        let stream = Stream::new();
        let mut slow = stream.subscribe().unwrap();
        let event = Arc::new(Event::new(EventKind::Denial));
        for _ in 0..BEHIND + 10 {
            stream.tell(&event);
        }
        assert_eq!(slow.next().await, Some(Told::Lost(10)));
        assert_eq!(slow.next().await, Some(Told::Event(11, event)));
    }

    #[tokio::test]
    async fn places_are_bounded_and_free_again_when_somebody_leaves() {
        let stream = Stream::new();
        let mut all: Vec<_> = (0..MOST_LISTENERS).map(|_| stream.subscribe().unwrap()).collect();
        assert!(stream.subscribe().is_none());
        all.pop();
        all.push(stream.subscribe().unwrap());
        stream.hang_up();
        for mut subscription in all {
            assert_eq!(subscription.next().await, None);
        }
        assert!(!stream.has_listeners());
    }
}
