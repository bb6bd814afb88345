//! Lets the tasks of a thread take the same step one after another.
//!
//! The code that a request runs through, system calls included, is several times larger than the first cache of a core. So where
//! many requests are under way at once, each stops between two steps until the others have come as far: the code of a step is
//! loaded once for all of them, and not once for each. Network stacks that process vectors of packets win by the same means.
//! Where few are under way nothing stops.

use std::cell::Cell;
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll};

/// With fewer steps than this in a round, nothing is won.
const CROWD: u32 = 16;

thread_local! {
    /// `None`: the thread does not say when its rounds begin.
    static ROUND: Cell<Option<Round>> = const { Cell::new(None) };

    /// Whether the task that is polled has stopped.
    static HAS_STOPPED: Cell<bool> = const { Cell::new(false) };
}

/// What a thread does between two waits for events: all tasks that were ready go as far as they can.
#[derive(Clone, Copy)]
struct Round {
    /// How many steps were finished.
    steps: u32,
    /// How many there were in the round before.
    before: u32,
}

/// A round begins. To be called whenever the thread is about to wait for events.
pub fn begin_round() {
    let before = ROUND.get().map_or(0, |round| round.steps);
    ROUND.set(Some(Round { steps: 0, before }));
}

/// The task has finished a step. Returns whether it stops before its next one: then it must be pending, and was woken already for
/// when the others that are ready have been polled.
pub fn stops(cx: &Context<'_>) -> bool {
    let Some(Round { steps, before }) = ROUND.get() else { return false };
    let steps = steps.saturating_add(1);
    ROUND.set(Some(Round { steps, before }));
    let is_crowded = steps.max(before) >= CROWD;
    if is_crowded {
        HAS_STOPPED.set(true);
        cx.waker().wake_by_ref();
    }
    is_crowded
}

/// The same for an async function: it stops here, if it does.
pub async fn stop() {
    let mut may_stop = true;
    poll_fn(|cx| if mem::take(&mut may_stop) && stops(cx) { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// Polls, and also returns whether the task has stopped. Who has stopped waits for nothing, and is polled again at once.
pub fn polled<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    HAS_STOPPED.set(false);
    (poll(), HAS_STOPPED.get())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;
    use std::thread;

    use parking_lot::Mutex;
    use tokio::runtime;
    use tokio::task::JoinSet;

    use super::*;

    const MANY: usize = 3 * CROWD as usize;

    /// The order in which so many tasks finish a first step and a second one, all in a round that begins now.
    fn order_of_steps(tasks: usize) -> Vec<(&'static str, usize)> {
        let order = Arc::new(Mutex::new(Vec::new()));
        let steps = |task, order: Arc<Mutex<Vec<_>>>| async move {
            order.lock().push(("first", task));
            stop().await;
            order.lock().push(("second", task));
        };
        begin_round();
        let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            (0..tasks).map(|task| steps(task, Arc::clone(&order))).collect::<JoinSet<()>>().join_all().await
        });
        order.lock().clone()
    }

    fn stops_now() -> bool {
        stops(&Context::from_waker(Waker::noop()))
    }

    /// A thread that knows nothing of other tests.
    fn anew(test: fn()) {
        thread::spawn(test).join().expect("no panic");
    }

    #[test]
    fn a_crowd_takes_each_step_together() {
        anew(|| {
            // The first ones are alone, as far as they know.
            let few = CROWD as usize - 1;
            let alone = (0..few).flat_map(|task| [("first", task), ("second", task)]);
            let each = |step| (few..MANY).map(move |task| (step, task));
            let expected: Vec<_> = alone.chain(each("first")).chain(each("second")).collect();
            assert_eq!(order_of_steps(MANY), expected);
        });
    }

    #[test]
    fn a_few_go_on_at_once() {
        anew(|| {
            let few = CROWD as usize - 1;
            let each = |task| [("first", task), ("second", task)];
            assert_eq!(order_of_steps(few), (0..few).flat_map(each).collect::<Vec<_>>());
        });
    }

    #[test]
    fn a_crowd_is_expected_in_the_round_behind_one() {
        anew(|| {
            begin_round();
            assert_eq!((0..MANY).filter(|_| stops_now()).count(), MANY - CROWD as usize + 1);
            begin_round();
            assert!(stops_now());
            begin_round();
            assert!(!stops_now());
        });
    }

    #[test]
    fn a_thread_without_rounds_never_stops() {
        anew(|| assert!((0..MANY).all(|_| !stops_now())));
    }

    #[test]
    fn who_polls_learns_of_a_stop() {
        anew(|| {
            begin_round();
            let polled_now = || polled(stops_now);
            assert!((0..MANY).map(|_| polled_now()).all(|(stops, has_stopped)| stops == has_stopped));
            assert_eq!(polled(|| ()), ((), false));
        });
    }
}
