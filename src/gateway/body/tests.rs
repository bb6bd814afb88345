use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, timeout};

use crate::gateway::body::request_body::MAX_KEPT;
use crate::gateway::body::streaming_body::{MAX_FRAME, MAX_WAIT_FOR_ROOM};
use crate::gateway::body::{
    BodyAborted, BodyBounds, DescribedBody, DescribedBodyWriter, DescribedEnd, Peeked, RequestBody,
};
use crate::gateway::fault::BadRequest;
use crate::listen::handler::CONCURRENT_BODIES;
use crate::listen::{Budget, SHARE_FREE};
use crate::upstream::ReplayBody;

/// A body that yields steps from a list, and nothing more after `Silent`.
struct Script {
    steps: VecDeque<Step>,
}

enum Step {
    Data(&'static str),
    Trailers(&'static [(&'static str, &'static str)]),
    Broken,
    Silent,
}

impl Body for Script {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        match self.steps.front() {
            Some(Step::Silent) => return Poll::Pending,
            None => return Poll::Ready(None),
            _ => {}
        }
        Poll::Ready(match self.steps.pop_front() {
            Some(Step::Data(data)) => Some(Ok(Frame::data(Bytes::from_static(data.as_bytes())))),
            Some(Step::Trailers(lines)) => {
                let line = |(name, value): &(&'static str, &'static str)| {
                    (http::HeaderName::from_static(name), HeaderValue::from_static(value))
                };
                Some(Ok(Frame::trailers(lines.iter().map(line).collect())))
            }
            Some(Step::Broken) => Some(Err("broken")),
            _ => None,
        })
    }
}

fn body(steps: impl IntoIterator<Item = Step>) -> RequestBody<Script> {
    bounded(steps, None)
}

fn bounded(steps: impl IntoIterator<Item = Step>, length: Option<u64>) -> RequestBody<Script> {
    let bounds = BodyBounds { length, idle: Duration::from_secs(30), rate: 0 };
    RequestBody::new(Script { steps: steps.into_iter().collect() }, bounds)
}

async fn text(body: RequestBody<Script>) -> Result<String, BodyAborted> {
    let bytes = body.collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test]
async fn what_was_peeked_at_is_replayed() -> Result<(), BodyAborted> {
    let mut body = body([Step::Data("user="), Step::Data("alice"), Step::Data("&x=1")]);
    let peeked = body.peek(8, &Budget::default()).await.expect("a sound body");
    assert_eq!(peeked, Peeked { start: Bytes::from_static(b"user=ali"), is_whole: false });
    assert_eq!(text(body).await?, "user=alice&x=1");
    Ok(())
}

#[tokio::test]
async fn a_short_body_is_read_whole() -> Result<(), BodyAborted> {
    let mut body = body([Step::Data("user=alice")]);
    let progress = body.progress().expect("a body");
    let peeked = body.peek(64, &Budget::default()).await.expect("a sound body");
    assert_eq!(peeked, Peeked { start: Bytes::from_static(b"user=alice"), is_whole: true });
    assert_eq!(body.size_hint().exact(), Some(10));
    assert_eq!(text(body).await?, "user=alice");
    assert_eq!(progress.bytes(), 10);
    Ok(())
}

#[tokio::test]
async fn trailers_outlive_a_peek_and_lose_what_may_not_trail() {
    let lines = &[("x-checksum", "1"), ("host", "evil")];
    let mut body = body([Step::Data("a"), Step::Trailers(lines)]);
    assert!(body.peek(64, &Budget::default()).await.expect("a sound body").is_whole);
    assert_eq!(body.size_hint().exact(), None);
    let collected = body.collect().await.expect("a sound body");
    let trailers = collected.trailers().expect("trailers");
    assert_eq!(trailers.len(), 1);
    assert_eq!(trailers["x-checksum"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_times_out() {
    let mut body = body([Step::Data("a"), Step::Silent]);
    let before = Instant::now();
    assert_eq!(body.peek(64, &Budget::default()).await, Err(BadRequest::Slow));
    assert_eq!(before.elapsed(), Duration::from_secs(30));
}

#[tokio::test]
async fn a_body_beyond_its_bound_breaks_off() {
    let body = bounded([Step::Data("abc"), Step::Data("def")], Some(5));
    let progress = body.progress().expect("a body");
    assert_eq!(text(body).await, Err(BodyAborted));
    assert_eq!(progress.fault(), Some(BadRequest::TooLong));
}

#[tokio::test]
async fn a_malformed_body_is_the_clients_fault() {
    let mut peeked = body([Step::Data("a"), Step::Broken]);
    assert_eq!(peeked.peek(64, &Budget::default()).await, Err(BadRequest::Body));
    let streamed = body([Step::Data("a"), Step::Broken]);
    let progress = streamed.progress().expect("a body");
    assert_eq!(text(streamed).await, Err(BodyAborted));
    assert_eq!(progress.fault(), Some(BadRequest::Body));
}

#[tokio::test(start_paused = true)]
async fn an_unwanted_body_is_read_if_that_costs_little() {
    assert!(body([Step::Data("a"), Step::Data("b")]).discard().await);
    assert!(!body([Step::Data("a"), Step::Silent]).discard().await);
    assert!(!body([Step::Broken]).discard().await);
    let long: &'static str = Box::leak("x".repeat(40_000).into_boxed_str());
    assert!(!body([Step::Data(long), Step::Data(long)]).discard().await);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_not_asked_for_a_body_behind_a_closed_gate() {
    let (continue_signal, gate) = crate::gateway::body::expect::continue_gate();
    let mut body = body([Step::Data("a")]);
    body.wait_for(gate);
    continue_signal.close();
    assert!(timeout(Duration::from_secs(9), body.frame()).await.is_err());
    drop(continue_signal);
    assert!(matches!(body.frame().await, Some(Err(BodyAborted))));
}

#[tokio::test]
async fn a_request_without_a_body_has_none() {
    let body = RequestBody::new(
        http_body_util::Empty::<Bytes>::new(),
        BodyBounds { length: None, idle: Duration::ZERO, rate: 0 },
    );
    assert!(body.is_empty() && body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(0));
    let collected: Result<_, BodyAborted> = body.collect().await;
    assert!(collected.expect("nothing").to_bytes().is_empty());
}

/// Longer than a short body by one byte.
const LONG: &str = match str::from_utf8(&[b'x'; SHARE_FREE + 1]) {
    Ok(text) => text,
    Err(_) => "",
};

async fn peeked_at_long(budget: &Budget) -> Result<RequestBody<Script>, BadRequest> {
    let mut long = body([Step::Data(LONG), Step::Data("y"), Step::Silent]);
    long.peek(LONG.len() + 1, budget).await?;
    Ok(long)
}

#[tokio::test(start_paused = true)]
async fn bodies_of_a_connection_share_a_budget_and_short_ones_need_none() {
    let budget = Budget::default();
    let mut kept = Vec::new();
    while let Ok(long) = peeked_at_long(&budget).await {
        kept.push(long);
    }
    let total = CONCURRENT_BODIES * (LONG.len() + 1 + MAX_FRAME);
    assert!((total - MAX_FRAME..=total).contains(&(kept.len() * (LONG.len() + 1) + LONG.len() + 1)), "{}", kept.len());

    let before = Instant::now();
    assert_eq!(peeked_at_long(&budget).await.err(), Some(BadRequest::NoRoom));
    assert_eq!(before.elapsed(), MAX_WAIT_FOR_ROOM);
    let mut short = body([Step::Data("user=alice"), Step::Data("&x=1")]);
    assert!(short.peek(LONG.len() + 1, &budget).await.expect("a sound body").is_whole);

    // Bytes on their way to the application are in memory until they are written.
    let mut sent = Vec::new();
    for mut long in kept.drain(..4) {
        sent.push(poll_fn(|cx| Pin::new(&mut long).poll_frame(cx)).await);
    }
    assert_eq!(peeked_at_long(&budget).await.err(), Some(BadRequest::NoRoom));
    drop(sent);
    assert!(peeked_at_long(&budget).await.is_ok());
}

fn full(length: usize) -> RequestBody<Full<Bytes>> {
    let bounds = BodyBounds { length: None, idle: Duration::from_secs(30), rate: 0 };
    RequestBody::new(Full::from(vec![b'x'; length]), bounds)
}

async fn length_of_rest(body: &mut RequestBody<Full<Bytes>>) -> usize {
    body.collect().await.unwrap().to_bytes().len()
}

#[tokio::test]
async fn a_short_body_is_replayed_from_its_first_byte() {
    let mut body = full(MAX_KEPT);
    for _ in 0..3 {
        body.keep();
        assert_eq!(body.size_hint().exact(), Some(MAX_KEPT as u64));
        assert_eq!(length_of_rest(&mut body).await, MAX_KEPT);
        assert!(body.is_end_stream());
        assert!(body.replay());
    }
}

#[tokio::test]
async fn a_long_body_is_replayed_only_if_it_is_in_memory() {
    let mut streamed = full(MAX_KEPT + 1);
    streamed.keep();
    assert_eq!(length_of_rest(&mut streamed).await, MAX_KEPT + 1);
    assert!(!streamed.replay());

    let mut peeked = full(MAX_KEPT + 1);
    assert!(peeked.peek(2 * MAX_KEPT, &Budget::default()).await.unwrap().is_whole);
    peeked.keep();
    assert_eq!(length_of_rest(&mut peeked).await, MAX_KEPT + 1);
    assert!(peeked.replay());
    assert_eq!(length_of_rest(&mut peeked).await, MAX_KEPT + 1);
}

#[tokio::test]
async fn a_body_that_needs_no_replay_is_not_kept() {
    let mut body = full(10);
    body.keep();
    body.stop_keeping();
    assert_eq!(length_of_rest(&mut body).await, 10);
    assert!(!body.replay());
}

/// A described body, with its writer.
fn described() -> (RequestBody, DescribedBodyWriter) {
    let (body, writer) = DescribedBody::channel();
    let bounds = BodyBounds { length: None, idle: Duration::from_secs(30), rate: 0 };
    (RequestBody::new(body.into(), bounds), writer)
}

#[tokio::test]
async fn a_described_body_is_whole_only_where_the_proxy_shows_all_of_it() {
    for (end, is_whole) in [(DescribedEnd::Whole, true), (DescribedEnd::Cut, false)] {
        let (mut body, writer) = described();
        writer.push(Bytes::from_static(b"user="));
        writer.push(Bytes::from_static(b"alice"));
        writer.end(end);
        let peeked = body.peek(64, &Budget::default()).await.expect("a sound body");
        assert_eq!(peeked, Peeked { start: Bytes::from_static(b"user=alice"), is_whole }, "{end:?}");
        assert!(!writer.is_wanted());
    }
}

#[tokio::test]
async fn a_described_body_asks_for_its_parts_when_it_is_read() {
    let (mut body, writer) = described();
    assert!(!writer.is_wanted());
    let reading = tokio::spawn(async move { body.peek(64, &Budget::default()).await });
    writer.wanted().await;
    writer.push(Bytes::from_static(b"user=alice"));
    writer.end(DescribedEnd::Whole);
    writer.push(Bytes::from_static(b"behind the end"));
    let peeked = reading.await.expect("no panic").expect("a sound body");
    assert_eq!(peeked.start, "user=alice");
}

#[tokio::test]
async fn a_body_that_the_proxy_withholds_is_waited_for_by_those_who_read_it() {
    let (mut body, writer) = described();
    writer.end(DescribedEnd::Withheld);
    assert!(!writer.is_wanted());
    let reading = tokio::spawn(async move { body.peek(64, &Budget::default()).await });
    writer.wanted().await;
    assert!(!reading.is_finished());
}
