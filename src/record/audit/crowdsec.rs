//! Reports bans of addresses to a Local API of `CrowdSec`, and deletes lifted ones there.

use std::collections::VecDeque;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::record::event::{BannedNetwork, EventKind};
use crate::record::metrics::WriterHealth;
use crate::record::{Event, Metrics};
use crate::wire::crowdsec::{Alert, LapiError, Machine, Reporter};

/// The sending end of the queue. When the last holder drops it, the task sends the queue and ends.
#[derive(Debug)]
pub(super) struct AlertWriter {
    queue: mpsc::Sender<Report>,
    dropped: Counter,
    /// The log says that reports are dropped.
    is_dropping: AtomicBool,
}

/// A message for the API.
#[derive(Clone, Debug)]
struct Report {
    change: Change,
    alert: Alert,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    Ban,
    /// A ban in the place of one that the API may know.
    Replace,
    Lift,
}

/// How many reports wait while the API is away; about 2 MB.
const MAX_QUEUED: usize = 10_000;

/// How many bans are reported at once.
const BATCH: usize = 100;

const FIRST_PAUSE: Duration = Duration::from_millis(500);

const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl AlertWriter {
    /// To be called within a runtime. When `closing` is cancelled, the task tries to send the queue once more and ends.
    pub(super) fn start(machine: Machine, metrics: &Metrics, tasks: &TaskTracker, closing: CancellationToken) -> Self {
        let (queue, reports) = mpsc::channel(MAX_QUEUED);
        let (dropped, health) = (metrics.audit_dropped("crowdsec"), metrics.writer("audit"));
        let log = ReportLog { failing: None, health };
        tasks.spawn(send_queued(machine, reports, dropped.clone(), log, closing));
        Self { queue, dropped, is_dropping: AtomicBool::new(false) }
    }

    /// Queues the ban of an address that begins or is lifted, and nothing else. Does not wait.
    pub(super) fn append(&self, event: &Event) {
        let Some(report) = Report::of(event) else { return };
        if self.queue.try_send(report).is_ok() {
            self.is_dropping.store(false, Ordering::Relaxed);
            return;
        }
        self.dropped.inc();
        if !self.is_dropping.swap(true, Ordering::Relaxed) {
            warn!("{MAX_QUEUED} bans wait to be reported to CrowdSec: further ones are dropped until there is room");
        }
    }
}

impl Report {
    fn of(event: &Event) -> Option<Self> {
        let BannedNetwork { network, by_operator } = event.banned_network?;
        let change = match event.kind {
            EventKind::Ban if by_operator => Change::Replace,
            EventKind::Ban => Change::Ban,
            EventKind::Unban => Change::Lift,
            EventKind::Denial | EventKind::Delay | EventKind::Reload | EventKind::SignedInAfterFailures => return None,
        };
        let cause = event.limit.as_deref().unwrap_or("operator").to_owned();
        let message = event.reason.as_deref().unwrap_or("banned by portcullis").to_owned();
        Some(Self { change, alert: Alert { network, cause, message, until: event.until.unwrap_or_default() } })
    }
}

async fn send_queued(
    machine: Machine,
    mut queue: mpsc::Receiver<Report>,
    dropped: Counter,
    mut log: ReportLog,
    closing: CancellationToken,
) {
    let mut reporter = Reporter::new(&machine);
    let (mut waiting, mut pause) = (VecDeque::new(), FIRST_PAUSE);
    loop {
        if waiting.is_empty() {
            let received = tokio::select! {
                biased;
                report = queue.recv() => report,
                () = closing.cancelled(), if !queue.is_closed() => {
                    queue.close();
                    continue;
                }
            };
            let Some(report) = received else { return };
            waiting.push_back(report);
        }
        while waiting.len() < BATCH
            && let Ok(report) = queue.try_recv()
        {
            waiting.push_back(report);
        }
        match send_first(&mut reporter, &mut waiting).await {
            Ok(()) => {
                log.sent(&machine);
                pause = FIRST_PAUSE;
            }
            Err(error) => {
                log.failed(&machine, &error);
                // The API will refuse the same request again, so it is not retried.
                if matches!(&error, LapiError::Status(status) if status.is_client_error()) {
                    waiting.pop_front();
                    dropped.inc();
                } else if closing.is_cancelled() {
                    dropped.inc_by(waiting.len() as u64 + queue.len() as u64);
                    return;
                }
                let spread = 0.8 + 0.4 * fastrand::f64();
                tokio::select! {
                    () = time::sleep(pause.mul_f64(spread)) => {}
                    // The gateway stops: one more attempt at once, the last.
                    () = closing.cancelled() => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Sends the first of the waiting reports, and the bans behind it that go with it. They stay where that fails.
async fn send_first(reporter: &mut Reporter<'_>, waiting: &mut VecDeque<Report>) -> Result<(), LapiError> {
    let Some(Report { change, alert }) = waiting.front_mut() else { return Ok(()) };
    if *change != Change::Ban {
        reporter.delete(alert).await?;
        if *change == Change::Replace {
            *change = Change::Ban;
        } else {
            waiting.pop_front();
        }
        return Ok(());
    }
    let bans = waiting.iter().take_while(|report| report.change == Change::Ban);
    let alerts: Vec<Alert> = bans.map(|report| report.alert.clone()).collect();
    let sent = reporter.report(&alerts).await;
    if sent.is_ok() {
        waiting.drain(..alerts.len());
    } else {
        // The API may have taken them.
        waiting.iter_mut().take(alerts.len()).for_each(|report| report.change = Change::Replace);
    }
    sent
}

/// The last log message, so that none is repeated.
#[derive(Debug)]
struct ReportLog {
    failing: Option<Discriminant<LapiError>>,
    health: Arc<WriterHealth>,
}

impl ReportLog {
    fn sent(&mut self, machine: &Machine) {
        self.health.worked();
        if self.failing.take().is_some() {
            info!("bans are reported to {} again", machine.lapi.url);
        }
    }

    fn failed(&mut self, machine: &Machine, error: &LapiError) {
        let kind = discriminant(error);
        self.health.failed(|| format!("Bans cannot be reported to {}: {error}.", machine.lapi.url));
        if self.failing.replace(kind) == Some(kind) {
            return;
        }
        let Machine { lapi, login, .. } = machine;
        if let LapiError::Refused(_) = error {
            error!(
                %error,
                login,
                "bans cannot be reported to {} as `{login}`: {error}; `cscli machines add` sets the password, and \
                 `password_file` names the file that holds it",
                lapi.url,
            );
        } else {
            warn!(%error, "bans cannot be reported to {}: {error}; those that last are reported when it is back", lapi.url);
        }
    }
}
