//! Where records go: the request log, the metrics, the event bus and the exporters of spans.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;

use super::advice::Advisor;
use super::attacks::Attacks;
use super::audit::StoreRedis;
use super::heavy_keys::KeyTables;
use super::kept_requests::KeptRequests;
use super::log::{LogFailure, LogFile, RequestOutput};
use super::notify::{NotifySettings, WebhookChannels};
use super::spans::SpanExporters;
use super::{Event, EventBus, Fault, LineWriter, Metrics};
use crate::wire::http_client;
use crate::wire::http_client::{Client, root_cause};
use crate::wire::tls::{NoSystemRoots, client_config, system_roots};
use crate::words::clock::Timestamp;
use crate::words::word::words;

/// Lives as long as the process. Clones share the sinks.
#[derive(Clone, Debug)]
pub struct Sinks {
    pub(super) lines: Arc<LineWriter>,
    log_file: Arc<LogFile>,
    gateway_name: Arc<GatewayName>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) event_bus: Arc<EventBus>,
    pub(super) kept_requests: Arc<KeptRequests>,
    pub(super) key_tables: Arc<KeyTables>,
    span_exporters: Arc<SpanExporters>,
    pub(super) advisor: Arc<Advisor>,
    pub(super) attacks: Arc<Attacks>,
    /// The format where the configuration names none.
    pub(super) default_format: LogFormat,
}

impl Sinks {
    /// A thread of its own writes the lines of the request log to `log_file`, or to `out` where that leads to no file.
    pub fn new(
        out: impl Write + Send + 'static,
        log_file: &Arc<LogFile>,
        default_format: LogFormat,
    ) -> std::io::Result<Self> {
        let log_file = Arc::clone(log_file);
        let lines = LineWriter::start(RequestOutput { file: Arc::clone(&log_file), stream: out })?;
        Ok(Self { lines, log_file, default_format, ..Self::discard() })
    }

    /// Counts requests and writes no lines; for tests.
    pub fn discard() -> Self {
        let lines = Arc::new(LineWriter::detached());
        let (metrics, event_bus) = (Arc::new(Metrics::new()), Arc::new(EventBus::new()));
        Self {
            lines,
            log_file: Arc::default(),
            gateway_name: Arc::default(),
            metrics,
            event_bus,
            kept_requests: Arc::default(),
            key_tables: Arc::default(),
            span_exporters: Arc::default(),
            advisor: Arc::default(),
            attacks: Arc::default(),
            default_format: LogFormat::Json,
        }
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The file that both logs go to.
    pub fn log_file(&self) -> &Arc<LogFile> {
        &self.log_file
    }

    /// What operators call this gateway.
    pub fn gateway_name(&self) -> &Arc<GatewayName> {
        &self.gateway_name
    }

    /// Advice about probable misconfigurations.
    pub fn advisor(&self) -> &Arc<Advisor> {
        &self.advisor
    }

    /// What is attacked, and which sign-ins follow failures.
    pub fn attacks(&self) -> &Arc<Attacks> {
        &self.attacks
    }

    pub fn event_bus(&self) -> &Arc<EventBus> {
        &self.event_bus
    }

    /// The newest requests that were denied or held.
    pub fn kept_requests(&self) -> &Arc<KeptRequests> {
        &self.kept_requests
    }

    /// The heaviest keys of each limit, and the heaviest clients.
    pub fn key_tables(&self) -> &Arc<KeyTables> {
        &self.key_tables
    }

    pub fn span_exporters(&self) -> &SpanExporters {
        &self.span_exporters
    }

    /// Opens the webhook channels of a configuration. Unchanged channels are taken from `previous`. `redis`: where the gateways
    /// agree which of them sends. To be called within a runtime.
    pub fn open_channels(
        &self,
        settings: &NotifySettings,
        previous: &WebhookChannels,
        redis: Option<&Arc<dyn StoreRedis>>,
    ) -> WebhookChannels {
        self.event_bus.open_channels(settings, previous, &self.metrics, &self.gateway_name, redis)
    }

    /// Publishes an event that no request caused. Does not wait.
    pub fn publish(&self, event: Event) {
        self.event_bus.publish(&Arc::new(event));
    }

    /// Waits until every line is written, but no longer than `at_most`: stdout may be a pipe that is not read, and the
    /// exit must not hang on it.
    pub fn flush(&self, at_most: Duration) {
        self.lines.flush(at_most);
    }

    /// What of the records cannot be written now.
    pub fn faults(&self, now: Timestamp) -> Vec<Fault> {
        let of_stream = || {
            let LogFailure { why, since } = self.lines.failure()?;
            let sentence =
                format!("The log of requests cannot be written to standard output: {why}. They are not logged.");
            Some(Fault { about: "log", sentence, since })
        };
        let log = self.log_file.fault().or_else(of_stream);
        log.into_iter().chain(self.metrics.writer_faults(now)).collect()
    }

    /// How many lines of the request log were dropped because their reader was too slow, or their file took none.
    pub fn dropped_lines(&self) -> u64 {
        self.lines.dropped()
    }
}

// The name of the gateway.

/// What operators call this gateway: in the status, messages and metrics. Two may have the same. A reload may change it.
#[derive(Debug)]
pub struct GatewayName(ArcSwap<String>);

impl GatewayName {
    pub fn get(&self) -> Arc<String> {
        self.0.load_full()
    }

    /// Returns whether that is another name than before.
    pub fn set(&self, name: String) -> bool {
        let before = self.0.swap(Arc::new(name));
        before != self.0.load_full()
    }
}

impl Default for GatewayName {
    fn default() -> Self {
        Self(ArcSwap::from_pointee("portcullis".to_owned()))
    }
}

// The `log` section of the configuration.

/// The version of the Elastic Common Schema that lines follow.
pub(super) const ECS_VERSION: &str = "8.17.0";

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogSettings {
    pub level: tracing::Level,
    /// `None`: human on a terminal, JSON elsewhere.
    pub format: Option<LogFormat>,
    /// Whether each request is logged as a line.
    pub requests: bool,
    /// Whether the line has the query, which may hold secrets.
    pub query: bool,
    /// Where both logs go; `None`: to the streams of the process.
    pub file: Option<PathBuf>,
    /// The name of the gateway where the configuration gives it one: each line has it.
    pub gateway: Option<Arc<str>>,
}

impl LogSettings {
    pub const DEFAULT: Self =
        Self { level: tracing::Level::INFO, format: None, requests: true, query: false, file: None, gateway: None };

    /// The format in force. `of_stream` is the one for the stream of the process.
    pub(super) fn format_or(&self, of_stream: LogFormat) -> LogFormat {
        let usual = if self.file.is_some() { LogFormat::Json } else { of_stream };
        self.format.unwrap_or(usual)
    }
}

impl Default for LogSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

words! {
    /// The format of log lines.
    pub enum LogFormat {
        Json = "json",
        /// The Elastic Common Schema.
        Ecs = "ecs",
        /// The log data model of OpenTelemetry. Each line is a `LogRecord`.
        Otel = "otel",
        Human = "human",
    }
}

// Requests to webhooks and to the collector of spans, each over a connection of its own.

/// A longer head of an answer is an error.
const MAX_HEAD: usize = 16 * 1024;

/// Why there was no answer. Does not show the URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("{0}")]
    NoSystemRoots(#[from] NoSystemRoots),
    #[error("{}", root_cause(.0))]
    Client(#[from] legacy::Error),
}

/// Sends a request whose target is an absolute URL. Redirections are not followed. The caller bounds the time.
pub(super) async fn send(request: Request<Full<Bytes>>) -> Result<Response<Incoming>, SendError> {
    Ok(if request.uri().scheme() == Some(&Scheme::HTTPS) {
        https()?.request(request).await?
    } else {
        http_client::builder().http1_max_buf_size(MAX_HEAD).build(http_client::tcp()).request(request).await?
    })
}

/// Verifies servers with the system's certificates, which are read once.
fn https() -> Result<&'static Client<HttpsConnector<HttpConnector>>, NoSystemRoots> {
    static CLIENT: OnceLock<Client<HttpsConnector<HttpConnector>>> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client);
    }
    let mut tcp = http_client::tcp();
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new().with_tls_config(client_config(system_roots()?));
    let connector = connector.https_only().enable_http1().wrap_connector(tcp);
    Ok(CLIENT.get_or_init(|| http_client::builder().http1_max_buf_size(MAX_HEAD).build(connector)))
}
