//! How much a client may say over HTTP/2 that brings nothing forward: settings, pings, windows, priorities, streams
//! that it gives up. All of it is allowed, and some of it needed; without end it is work for nobody.

use std::time::Duration;

use tokio::time::Instant;

use super::frames::CONTINUATION;
use super::frames::DATA;
use super::frames::HEADERS;
use super::frames::RST_STREAM;

/// What is left of it on one connection. Requests and answers add to it, so that a busy client needs no patience.
#[derive(Debug)]
pub(super) struct FrameBudget {
    left: u32,
    refilled: Instant,
}

impl FrameBudget {
    pub(super) fn new() -> Self {
        Self { left: MOST, refilled: Instant::now() }
    }

    /// Takes note of a frame of the client; `false`: it has said too much.
    pub(super) fn note(&mut self, kind: u8) -> bool {
        match kind {
            // The bytes of these are bounded elsewhere.
            DATA | CONTINUATION => true,
            HEADERS => {
                self.earn(FOR_A_HEAD);
                true
            }
            RST_STREAM => self.spend(A_RESET),
            _ => self.spend(1),
        }
    }

    /// Takes note of a head that was malformed; `false`: that was one too many.
    pub(super) fn note_malformed(&mut self) -> bool {
        self.spend(A_RESET)
    }

    /// So many bytes went to the client at once: it may say that it has room for more, or ask how long they took.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.earn(1 + u32::try_from(bytes / BYTES).unwrap_or(MOST));
    }

    fn earn(&mut self, amount: u32) {
        self.left = self.left.saturating_add(amount).min(MOST);
    }

    fn spend(&mut self, cost: u32) -> bool {
        if self.left < cost {
            // The clock is asked only now: most connections never get here.
            let seconds = self.refilled.elapsed().as_secs();
            self.refilled += Duration::from_secs(seconds);
            self.earn(u32::try_from(seconds).unwrap_or(MOST).saturating_mul(A_SECOND));
        }
        let Some(left) = self.left.checked_sub(cost) else { return false };
        self.left = left;
        true
    }
}

/// What may be said in a row.
const MOST: u32 = 4096;

/// What may be said each second by a client that asks for nothing.
const A_SECOND: u32 = 50;

/// What goes with a request: priorities, windows.
const FOR_A_HEAD: u32 = 4;

/// A stream given up has cost us a request. More than two in five, for long, are no client's habit.
const A_RESET: u32 = 10;

/// One more frame for so many bytes that were sent. A client with small windows opens two for each frame of data, which
/// is no longer than they are; what it is sent for a frame that asks for nothing is a tenth of this.
const BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 6;

    /// How many frames of this kind may follow one another.
    fn allowed(budget: &mut FrameBudget, kind: u8) -> u32 {
        (0..10 * MOST).take_while(|_| budget.note(kind)).count().try_into().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn frames_without_end_are_too_many_and_a_few_each_second_are_not() {
        let mut budget = FrameBudget::new();
        assert_eq!(allowed(&mut budget, PING), MOST);
        assert_eq!(allowed(&mut budget, RST_STREAM), 0);
        for _ in 0..100 {
            tokio::time::advance(Duration::from_millis(1500)).await;
            assert!(budget.note(PING));
        }
        // What was earned meanwhile comes on top, once.
        assert!(allowed(&mut budget, PING) <= 2 * MOST);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(allowed(&mut budget, PING), 2 * A_SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_served_may_go_on_for_ever() {
        let mut budget = FrameBudget::new();
        for _ in 0..10 * MOST {
            // Two of five streams are given up, and each full frame of data makes room for the next one.
            assert!(
                [HEADERS, HEADERS, HEADERS, HEADERS, HEADERS, RST_STREAM, RST_STREAM].map(|kind| budget.note(kind))
                    == [true; 7]
            );
            budget.wrote(16 * 1024);
            assert!([8, 8, PING].map(|kind| budget.note(kind)) == [true; 3]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_small_windows_gets_a_large_body() {
        let mut budget = FrameBudget::new();
        for _ in 0..10 * MOST {
            // As much as fits into windows of 255 bytes, on two streams.
            budget.wrote(2 * (9 + 255));
            assert!([8; 4].map(|kind| budget.note(kind)) == [true; 4]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_to_frames_that_ask_for_nothing_earn_too_little() {
        let mut budget = FrameBudget::new();
        let rounds = (0..MOST).take_while(|_| {
            budget.wrote(100 * (9 + 8));
            (0..100).all(|_| budget.note(PING))
        });
        assert!((40..60).contains(&rounds.count()));
    }

    #[tokio::test(start_paused = true)]
    async fn streams_that_are_all_given_up_are_soon_too_many() {
        let mut budget = FrameBudget::new();
        let streams = (0..MOST).take_while(|_| budget.note(HEADERS) && budget.note(RST_STREAM)).count();
        assert!((500..1000).contains(&streams), "{streams}");
    }
}
