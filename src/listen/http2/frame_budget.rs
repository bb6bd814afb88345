//! Bounds the control frames of an HTTP/2 client: settings, pings, windows, priorities, resets. Each is allowed and some
//! are needed, but a flood of them is work without a request.

use std::time::Duration;

use tokio::time::Instant;

use super::frame::CONTINUATION;
use super::frame::DATA;
use super::frame::HEADERS;
use super::frame::RST_STREAM;

/// The budget of one connection. Requests and responses add to it, so that a busy client does not run out.
#[derive(Debug)]
pub(super) struct FrameBudget {
    left: u32,
    refilled: Instant,
}

impl FrameBudget {
    pub(super) fn new() -> Self {
        Self { left: MAX_FRAMES, refilled: Instant::now() }
    }

    /// Charges a frame of the client; `false`: the budget is spent.
    pub(super) fn note(&mut self, kind: u8) -> bool {
        match kind {
            // The bytes of these frames are bounded elsewhere.
            DATA | CONTINUATION => true,
            HEADERS => {
                self.earn(PER_HEAD);
                true
            }
            RST_STREAM => self.spend(RESET_COST),
            _ => self.spend(1),
        }
    }

    /// Notes that so many streams have got the beginning of their answers: a client that resets them has enough of the answer,
    /// as one that reads the first message of many.
    pub(super) fn answered(&mut self, streams: u32) {
        self.earn(streams.saturating_mul(RESET_COST - 1));
    }

    /// Charges a malformed head; `false`: the budget is spent.
    pub(super) fn note_malformed(&mut self) -> bool {
        self.spend(RESET_COST)
    }

    /// Notes a write to the client, who may answer it with window updates or pings.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.earn(1 + u32::try_from(bytes / BYTES_PER_FRAME).unwrap_or(MAX_FRAMES));
    }

    fn earn(&mut self, amount: u32) {
        self.left = self.left.saturating_add(amount).min(MAX_FRAMES);
    }

    fn spend(&mut self, cost: u32) -> bool {
        if self.left < cost {
            // The clock is read only here: most connections never get here.
            let seconds = self.refilled.elapsed().as_secs();
            self.refilled += Duration::from_secs(seconds);
            self.earn(u32::try_from(seconds).unwrap_or(MAX_FRAMES).saturating_mul(PER_SECOND));
        }
        let Some(left) = self.left.checked_sub(cost) else { return false };
        self.left = left;
        true
    }
}

/// Control frames in a row.
const MAX_FRAMES: u32 = 4096;

/// Control frames each second from a client without requests.
const PER_SECOND: u32 = 50;

/// Control frames that come with a request: priorities, windows.
const PER_HEAD: u32 = 4;

/// The price of a reset, which cost us a request. No client resets more than two streams in five for long.
const RESET_COST: u32 = 10;

/// One more frame for so many bytes that were sent. A client with small windows updates two windows for each DATA frame,
/// which is no longer than they are. The answer to a control frame is a tenth of this.
const BYTES_PER_FRAME: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 6;

    /// How many frames of this kind are allowed in a row.
    fn allowed(budget: &mut FrameBudget, kind: u8) -> u32 {
        (0..10 * MAX_FRAMES).take_while(|_| budget.note(kind)).count().try_into().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_frames_is_refused_and_a_few_each_second_are_not() {
        let mut budget = FrameBudget::new();
        assert_eq!(allowed(&mut budget, PING), MAX_FRAMES);
        assert_eq!(allowed(&mut budget, RST_STREAM), 0);
        for _ in 0..100 {
            tokio::time::advance(Duration::from_millis(1500)).await;
            assert!(budget.note(PING));
        }
        // The seconds in between have added to the budget, once.
        assert!(allowed(&mut budget, PING) <= 2 * MAX_FRAMES);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(allowed(&mut budget, PING), 2 * PER_SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_served_may_go_on_for_ever() {
        let mut budget = FrameBudget::new();
        for _ in 0..10 * MAX_FRAMES {
            // Two of five streams are reset, and the client updates the windows after each full DATA frame.
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
        for _ in 0..10 * MAX_FRAMES {
            // As much as fits into windows of 255 bytes, on two streams.
            budget.wrote(2 * (9 + 255));
            assert!([8; 4].map(|kind| budget.note(kind)) == [true; 4]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn responses_to_control_frames_earn_too_little() {
        let mut budget = FrameBudget::new();
        let rounds = (0..MAX_FRAMES).take_while(|_| {
            budget.wrote(100 * (9 + 8));
            (0..100).all(|_| budget.note(PING))
        });
        assert!((40..60).contains(&rounds.count()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_resets_every_stream_once_it_is_answered_may_go_on_for_ever() {
        let mut budget = FrameBudget::new();
        for _ in 0..10 * MAX_FRAMES {
            assert!(budget.note(HEADERS));
            budget.answered(1);
            assert!(budget.note(RST_STREAM));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_resets_every_stream_is_soon_refused() {
        let mut budget = FrameBudget::new();
        let streams = (0..MAX_FRAMES).take_while(|_| budget.note(HEADERS) && budget.note(RST_STREAM)).count();
        assert!((500..1000).contains(&streams), "{streams}");
    }
}
