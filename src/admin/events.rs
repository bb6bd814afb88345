//! The event stream, as server-sent events.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use http_body::Frame;
use serde_json::Value;
use tokio::time::timeout;

use super::AdminState;
use super::problem::Problem;
use super::shared::{Missing, Others, SIGN_INS};
use crate::admin::input::Query;
use crate::api::events::EventResponse;
use crate::record::event_stream::{StreamItem, Subscription};
use crate::record::history::MAX_MINUTES;
use crate::words::clock::{Timestamp, wall};

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A comment this often keeps proxies and this listener from closing a silent stream.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Live events
///
/// Server-sent events from now on: denials, delays, tarpits, challenges, bans, unbans, reloads, sign-ins after
/// failures. Each has an `id`, an `event`
/// and one line of JSON as its `data`. A comment every 15 seconds keeps the connection open. It has at most 500 denials
/// and delays a second. What it leaves out, and what a reader that is too slow loses, is told by the event `lost` with a
/// number. The stream ends when the gateway stops or its token changes.
/// What was before is at `/api/v1/events/recent`.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    responses(
        (status = 200, description = "A stream without an end.", body = EventResponse, content_type = "text/event-stream"),
        (status = 503, description = "The stream has 64 readers already."),
    )
)]
pub(super) async fn stream(State(state): State<Arc<AdminState>>) -> Result<impl IntoResponse, Problem> {
    let subscription = state.event_bus.stream().subscribe().ok_or_else(|| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the stream has its most readers already: try again when one of them has left",
        )
    })?;
    let first = Bytes::from_static(b": events from now on\n\n");
    let next = Some(Box::pin(next(subscription)) as Next);
    Ok(([(CONTENT_TYPE, EVENT_STREAM)], Body::new(EventBody { first: Some(first), next })))
}

/// The newest bans, unbans, reloads and sign-ins after failures
///
/// The newest first: 500 bans and unbans, also those of other gateways that this one has heard of, and 100 reloads of this
/// gateway, since it started; 200 sign-ins after failures of each gateway. What was denied or delayed is counted at `/api/v1/top` and told at `/api/v1/requests`.
#[utoipa::path(
    get,
    path = "/api/v1/events/recent",
    params(("minutes" = Option<u64>, Query, minimum = 1, maximum = 1440, description = "Left out: 60.")),
    responses(
        (status = 200, description = "The events of that time, as they were in the stream.", body = Vec<EventResponse>),
        (status = 400, description = "`minutes` is not a whole number within its bounds, or there is another parameter."),
    )
)]
pub(super) async fn recent(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<(Missing, Json<Vec<Value>>), Problem> {
    let query = Query::read(query.as_deref(), &["minutes"])?;
    let minutes = query.number("minutes", DEFAULT_MINUTES, 1..=MAX_MINUTES)?;
    let since = Timestamp::from_micros(wall().as_micros().saturating_sub(minutes * 60_000_000));
    let own = state.event_bus.past().since(since);
    let mut events: Vec<Value> = own.iter().map(|event| event.for_operators()).collect();
    let others = Others::ask(&state, &[SIGN_INS.to_owned()], None).await;
    let sign_ins = others.contents().filter_map(|content| serde_json::from_slice::<Vec<Value>>(content).ok()).flatten();
    let since = since.to_string();
    // Times are written alike, so that their texts are in their order.
    let time = |event: &Value| event["time"].as_str().unwrap_or_default().to_owned();
    events.extend(sign_ins.filter(|event| time(event) >= since));
    events.sort_by_key(|event| Reverse(time(event)));
    Ok((others.missing(), Json(events)))
}

const DEFAULT_MINUTES: u64 = 60;

/// The body of the answer.
struct EventBody {
    /// Sent at once, so that the reader knows that the stream works.
    first: Option<Bytes>,
    /// `None`: the stream has ended.
    next: Option<Next>,
}

type Next = Pin<Box<dyn Future<Output = Option<(Bytes, Subscription)>> + Send>>;

async fn next(mut subscription: Subscription) -> Option<(Bytes, Subscription)> {
    let chunk = match timeout(HEARTBEAT, subscription.next()).await {
        Err(_) => Bytes::from_static(b": still here\n\n"),
        Ok(Some(items)) => Bytes::from(items.iter().map(sse).collect::<String>()),
        Ok(None) => return None,
    };
    Some((chunk, subscription))
}

/// One server-sent event. JSON has no line ends, so it is one line of data.
fn sse(item: &StreamItem) -> String {
    match item {
        StreamItem::Event(event) => {
            format!("id: {}\nevent: {}\ndata: {}\n\n", event.number, event.kind.as_str(), event.json)
        }
        StreamItem::Lost(lost) => format!("event: lost\ndata: {{\"event\":\"lost\",\"lost\":{lost}}}\n\n"),
    }
}

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let Some(pending) = &mut self.next else { return Poll::Ready(None) };
        match pending.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some((chunk, subscription))) => {
                self.next = Some(Box::pin(next(subscription)));
                Poll::Ready(Some(Ok(Frame::data(chunk))))
            }
            Poll::Ready(None) => {
                self.next = None;
                Poll::Ready(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Event;
    use crate::record::event::EventKind;
    use crate::record::event_stream::StreamEvent;

    #[test]
    fn each_event_is_numbered_named_and_one_line_of_data() {
        let event = Event { reason: Some("two\nlines".into()), ..Event::new(EventKind::Reload) };
        let event = StreamEvent { number: 7, kind: event.kind, json: event.to_json() };
        let text = sse(&StreamItem::Event(Arc::new(event)));
        assert!(text.starts_with("id: 7\nevent: reload\ndata: {\"time\":"), "{text}");
        assert!(text.ends_with("\"reason\":\"two\\nlines\"}\n\n"), "{text}");
        assert_eq!(text.lines().count(), 4);
        assert_eq!(sse(&StreamItem::Lost(3)), "event: lost\ndata: {\"event\":\"lost\",\"lost\":3}\n\n");
    }
}
