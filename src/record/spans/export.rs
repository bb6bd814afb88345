//! Sends queued spans in batches.

use std::time::Duration;

use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_otlp::RetryPolicy;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_otlp::WithHttpConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::SpanData;
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::sync::mpsc;
use tokio::time;
use tokio_util::sync::CancellationToken;
use tracing::info;
use tracing::warn;

use super::CollectorUrl;
use super::collector_client::CollectorClient;
use crate::record::metrics::SpanMetrics;

/// Sends them when there are so many, ...
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

/// One attempt at a time without retries of its own: those would stop the thread, on which everything else of the process runs.
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
