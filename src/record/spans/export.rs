//! Sends queued spans in batches.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::uri::Authority;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::mpsc;
use tokio::time;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::record::metrics::SpanMetrics;
use crate::record::spans::{Tracer, TracingSettings};
use crate::record::{Metrics, sinks};
use crate::words::word::Help;

/// Sends spans when there are this many, ...
const BATCH: usize = 512;

/// ... or when the first has waited for so long.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a batch is sent at most.
const MAX_ATTEMPTS: u32 = 4;

/// The wait before the second attempt. Each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Ends when all senders of `queue` are gone or `closing` is cancelled, and everything queued was sent.
pub(super) async fn export_queued(
    collector: CollectorUrl,
    mut queue: mpsc::Receiver<Vec<SpanData>>,
    counters: SpanMetrics,
    closing: CancellationToken,
) {
    let exporter = match exporter(&collector) {
        Ok(exporter) => exporter,
        Err(error) => {
            warn!(%error, "no spans are sent: {error}");
            while let Some(spans) = queue.recv().await {
                counters.dropped(spans.len());
            }
            return;
        }
    };
    let mut is_healthy = true;
    while let Some(batch) = next_batch(&mut queue, &closing).await {
        let count = batch.len();
        let result = send_with_retries(&exporter, batch, &closing).await;
        match (&result, is_healthy) {
            (Ok(()), false) => info!("the collector of spans takes them again"),
            (Err(error), true) => warn!(%error, "the collector of spans takes none, they are dropped: {error}"),
            _ => {}
        }
        is_healthy = result.is_ok();
        if is_healthy { counters.exported(count) } else { counters.failed(count) }
    }
}

/// One attempt at a time, without retries of the exporter: they would block the thread, which also runs everything else
/// of the process.
fn exporter(collector: &CollectorUrl) -> Result<SpanExporter, ExporterBuildError> {
    let builder = SpanExporter::builder().with_http().with_http_client(CollectorClient);
    let mut exporter = builder.with_retry_policy(RetryPolicy::disabled()).with_endpoint(collector.as_str()).build()?;
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name("portcullis").with_attribute(version).build();
    exporter.set_resource(&resource);
    Ok(exporter)
}

/// `None`: there will be no more.
async fn next_batch(queue: &mut mpsc::Receiver<Vec<SpanData>>, closing: &CancellationToken) -> Option<Vec<SpanData>> {
    let mut batch = next(queue, closing).await?;
    let deadline = time::sleep(PATIENCE);
    tokio::pin!(deadline);
    while batch.len() < BATCH {
        tokio::select! {
            biased;
            spans = next(queue, closing) => match spans {
                Some(spans) => batch.extend(spans),
                None => break,
            },
            () = &mut deadline => break,
        }
    }
    Some(batch)
}

/// The next spans of the queue, which is closed when the gateway stops.
async fn next(queue: &mut mpsc::Receiver<Vec<SpanData>>, closing: &CancellationToken) -> Option<Vec<SpanData>> {
    tokio::select! {
        biased;
        spans = queue.recv() => return spans,
        () = closing.cancelled() => queue.close(),
    }
    queue.recv().await
}

async fn send_with_retries(
    exporter: &SpanExporter,
    batch: Vec<SpanData>,
    closing: &CancellationToken,
) -> Result<(), OTelSdkError> {
    let mut wait = FIRST_WAIT;
    for _ in 1..MAX_ATTEMPTS {
        if exporter.export(batch.clone()).await.is_ok() {
            return Ok(());
        }
        tokio::select! {
            () = time::sleep(wait) => wait *= 2,
            // The gateway stops: one more attempt at once, the last.
            () = closing.cancelled() => break,
        }
    }
    exporter.export(batch).await
}

// The tasks that send spans.

/// Lives as long as the process. A reload may replace the tracer.
#[derive(Debug, Default)]
pub struct SpanExporters {
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl SpanExporters {
    /// The tracer of a configuration: `previous`, where the settings did not change. To be called within a runtime.
    pub fn open(
        &self,
        settings: Option<&TracingSettings>,
        previous: Option<&Arc<Tracer>>,
        metrics: &Metrics,
    ) -> Option<Arc<Tracer>> {
        let settings = settings?;
        let kept = previous.filter(|previous| previous.settings() == settings);
        Some(kept.map_or_else(
            || Tracer::open(settings.clone(), metrics.spans(), &self.tasks, self.closing.clone()),
            Arc::clone,
        ))
    }

    /// Waits until all queued spans are sent, but no longer than `at_most`.
    pub async fn close(&self, at_most: Duration) {
        self.closing.cancel();
        self.tasks.close();
        drop(timeout(at_most, self.tasks.wait()).await);
    }
}

// How the exporter reaches the collector: with the client that webhooks use.

/// From the name lookup to the end of the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The answer says which spans were refused, in a few words.
const MAX_ANSWER: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct CollectorClient;

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = async {
            let (head, body) = sinks::send(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        timeout(TIMEOUT, exchange).await.map_err(|_| "the collector did not answer within 5 s")?
    }
}

// Where spans are sent.

/// The path that OTLP/HTTP appends to the URL of a collector.
const TRACES: &str = "/v1/traces";

/// The URL of a collector's path for traces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CollectorUrl(String);

/// Why a text is not the URL of a collector. Never shows the text itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidCollectorUrl {
    #[error("`otlp` is an http:// or https:// URL")]
    NotHttp,
    #[error("`otlp` has no user name or password")]
    Credentials,
    #[error("`otlp` has no query")]
    Query,
}

impl Help for InvalidCollectorUrl {
    fn help(&self) -> String {
        let help = match self {
            Self::NotHttp => "write the address of a collector for OTLP over HTTP: `http://127.0.0.1:4318`",
            Self::Credentials => {
                "remove the part before the `@`; headers for the collector are taken from the variable \
                 OTEL_EXPORTER_OTLP_HEADERS"
            }
            Self::Query => {
                "remove what stands behind the `?`; headers for the collector are taken from the variable \
                 OTEL_EXPORTER_OTLP_HEADERS"
            }
        };
        help.to_owned()
    }
}

impl CollectorUrl {
    /// `/v1/traces` is added where it is missing.
    pub fn parse(text: &str) -> Result<Self, InvalidCollectorUrl> {
        let uri = text.trim().parse::<Uri>().map_err(|_| InvalidCollectorUrl::NotHttp)?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidCollectorUrl::Credentials);
        }
        let Some(scheme) = scheme.filter(|_| uri.host().is_some_and(|host| !host.is_empty())) else {
            return Err(InvalidCollectorUrl::NotHttp);
        };
        if uri.query().is_some() || text.contains('#') {
            return Err(InvalidCollectorUrl::Query);
        }
        if authority.ends_with(':') {
            return Err(InvalidCollectorUrl::NotHttp);
        }
        let path = uri.path().trim_end_matches('/');
        let end = if path.ends_with(TRACES) { "" } else { TRACES };
        Ok(Self(format!("{scheme}://{authority}{path}{end}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_for_traces_is_added_once() {
        for (text, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://otel.example.com/v1/traces", "https://otel.example.com/v1/traces"),
            ("https://otel.example.com/otlp/", "https://otel.example.com/otlp/v1/traces"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(CollectorUrl::parse(text).map(|url| url.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_of_a_collector_is_refused() {
        for (text, expected) in [
            ("", InvalidCollectorUrl::NotHttp),
            ("127.0.0.1:4318", InvalidCollectorUrl::NotHttp),
            ("grpc://127.0.0.1:4317", InvalidCollectorUrl::NotHttp),
            ("http://a:", InvalidCollectorUrl::NotHttp),
            ("http://me:hunter2@a", InvalidCollectorUrl::Credentials),
            ("http://a/?token=hunter2", InvalidCollectorUrl::Query),
        ] {
            assert_eq!(CollectorUrl::parse(text), Err(expected), "{text}");
        }
    }
}
