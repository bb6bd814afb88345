//! Waits for several futures at once.

use std::future::poll_fn;
use std::task::Poll;

/// Waits for all futures at once, and returns their outputs in the same order.
pub(in crate::store::redis) async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut is_pending = false;
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(done) => *output = Some(done),
                Poll::Pending => is_pending = true,
            }
        }
        if is_pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_takes_as_long_as_the_longest() {
        let begin = Instant::now();
        let waits = [3, 1, 2].map(|seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            seconds
        });
        assert_eq!(join_all(waits).await, [3, 1, 2]);
        assert_eq!(begin.elapsed().as_secs(), 3);
        assert!(join_all(Vec::<std::future::Ready<()>>::new()).await.is_empty());
    }
}
