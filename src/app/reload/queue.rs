//! Reloads as they are requested: one at a time, read on a thread of its own, so that a file system that hangs delays no
//! signal.

use std::future;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time;
use tokio::time::Instant;
use tracing::debug;
use tracing::info;
use tracing::warn;

use super::error::ReloadError;
use super::read::BuiltConfig;
use super::report::reply;
use crate::admin::ReloadRefusal;
use crate::admin::ReloadReply;
use crate::admin::ReloadRequest;
use crate::app::App;
use crate::app::Origin;
use crate::app::service_manager;

/// The reload under way, and the one that is to follow it.
#[derive(Default)]
pub(in crate::app) struct ReloadQueue {
    running: Option<RunningReload>,
    /// A reload was requested while one was under way, which may have read its files before.
    is_requested_again: bool,
    /// Operators who wait for the reload that is to follow.
    waiting: Vec<oneshot::Sender<ReloadReply>>,
    /// A certificate and its key are two files and seldom change in one moment. While only one of them is new they do not
    /// belong together, which is an error only if it lasts.
    half_renewed_since: Option<Instant>,
}

struct RunningReload {
    reading: JoinHandle<Result<Box<BuiltConfig>, ReloadError>>,
    /// A changed file caused it, no request.
    is_by_change: bool,
    /// Operators who wait for it.
    waiting: Vec<oneshot::Sender<ReloadReply>>,
}

/// What the queue has to handle next.
pub(in crate::app) enum ReloadStep {
    Read(Result<Box<BuiltConfig>, ReloadError>),
    /// A certificate and its key have not belonged together for too long.
    StaysHalfRenewed,
}

impl ReloadQueue {
    /// An operator requests a reload over the admin API, and waits for its result. The reply is dropped if too many wait.
    pub(in crate::app) fn request_and_reply(&mut self, app: &App, origin: &Origin, request: ReloadRequest) {
        if let Some(why_not) = why_not(origin) {
            // An error means that the operator has gone.
            let _ = request.reply.send(Err(ReloadRefusal::NoFile(why_not)));
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.push(request.reply);
            self.request_from_file(app);
        }
    }

    /// An operator requests a reload by a signal.
    pub(in crate::app) fn request(&mut self, app: &App, origin: &Origin) {
        let Some(why_not) = why_not(origin) else { return self.request_from_file(app) };
        service_manager::reloading();
        info!("nothing to reload: {why_not}");
        service_manager::ready(false);
    }

    fn request_from_file(&mut self, app: &App) {
        self.half_renewed_since = None;
        if self.is_running() {
            self.is_requested_again = true;
            return warn!("a reload is under way, and its files are not read yet; another one follows it");
        }
        self.begin(app, false);
    }

    /// A file has changed.
    pub(in crate::app) fn file_changed(&mut self, app: &App) {
        self.begin(app, true);
    }

    fn begin(&mut self, app: &App, is_by_change: bool) {
        service_manager::reloading();
        let waiting = std::mem::take(&mut self.waiting);
        self.running = Some(RunningReload { reading: app.begin_reload(), is_by_change, waiting });
    }

    pub(in crate::app) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Waits for the next step, to be [handled](Self::handle). May be dropped at any time and called again.
    pub(in crate::app) async fn next(&mut self) -> ReloadStep {
        if let Some(RunningReload { reading, .. }) = &mut self.running {
            return ReloadStep::Read(reading.await.unwrap_or(Err(ReloadError::Panic)));
        }
        match self.half_renewed_since {
            Some(since) => time::sleep_until(since + RENEWAL_TIME).await,
            None => future::pending().await,
        }
        ReloadStep::StaysHalfRenewed
    }

    pub(in crate::app) fn handle(&mut self, app: &mut App, step: ReloadStep) {
        let read = match step {
            ReloadStep::Read(read) => read,
            ReloadStep::StaysHalfRenewed => return self.request_from_file(app),
        };
        let Some(RunningReload { is_by_change, waiting, .. }) = self.running.take() else { return };
        if is_by_change && !self.is_requested_again && read.as_ref().is_err_and(ReloadError::is_half_renewed) {
            debug!("a key does not belong to its certificate, perhaps one of them is yet to be renewed");
            self.half_renewed_since.get_or_insert_with(Instant::now);
        } else {
            let result = app.finish_reload(read);
            for operator in waiting {
                // An error means that the operator has gone.
                let _ = operator.send(reply(&result));
            }
            self.half_renewed_since = None;
        }
        service_manager::ready(false);
        if std::mem::take(&mut self.is_requested_again) {
            self.begin(app, false);
        }
    }
}

/// Why there is nothing that could be read again; `None`: there is a file.
fn why_not(origin: &Origin) -> Option<&'static str> {
    match origin {
        Origin::File(_) => None,
        Origin::Flags => Some("the configuration is the command line"),
        Origin::StandardInput => Some("the configuration came from standard input, which cannot be read again"),
    }
}

/// How many operators may wait while a file system hangs.
const MAX_WAITING: usize = 64;

/// How long renewing a certificate and its key may take.
const RENEWAL_TIME: Duration = Duration::from_secs(2);
