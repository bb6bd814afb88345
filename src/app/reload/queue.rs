//! Reloads as they are requested: one at a time, read on a thread of its own, so that a file system that hangs delays no
//! signal.

use std::future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time;
use tokio::time::Instant;
use tracing::debug;
use tracing::info;
use tracing::warn;

use super::error::ReloadError;
use super::read::BuiltConfig;
use crate::app::App;
use crate::app::Origin;
use crate::app::service_manager;

/// The reload under way, and the one that is to follow it.
#[derive(Default)]
pub(in crate::app) struct ReloadQueue {
    running: Option<RunningReload>,
    /// A reload was requested while one was under way, which may have read its files before.
    is_requested_again: bool,
    /// A certificate and its key are two files and seldom change in one moment. While only one of them is new they do not
    /// belong together, which is an error only if it lasts.
    half_renewed_since: Option<Instant>,
}

struct RunningReload {
    reading: JoinHandle<Result<Box<BuiltConfig>, ReloadError>>,
    /// A changed file caused it, no request.
    is_by_change: bool,
}

/// What the queue has to handle next.
pub(in crate::app) enum ReloadStep {
    Read(Result<Box<BuiltConfig>, ReloadError>),
    /// A certificate and its key have not belonged together for too long.
    StaysHalfRenewed,
}

impl ReloadQueue {
    /// An operator requests a reload.
    pub(in crate::app) fn request(&mut self, app: &App, origin: &Origin) {
        let why_not = match origin {
            Origin::File(_) => return self.request_from_file(app),
            Origin::Flags => "the configuration is the command line",
            Origin::StandardInput => "the configuration came from standard input, which cannot be read again",
        };
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
        self.running = Some(RunningReload { reading: app.begin_reload(), is_by_change });
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
        let is_by_change = self.running.take().is_some_and(|running| running.is_by_change);
        if is_by_change && !self.is_requested_again && read.as_ref().is_err_and(ReloadError::is_half_renewed) {
            debug!("a key does not belong to its certificate, perhaps one of them is yet to be renewed");
            self.half_renewed_since.get_or_insert_with(Instant::now);
        } else {
            // The result has been logged.
            drop(app.finish_reload(read));
            self.half_renewed_since = None;
        }
        service_manager::ready(false);
        if std::mem::take(&mut self.is_requested_again) {
            self.begin(app, false);
        }
    }
}

/// How long renewing a certificate and its key may take.
const RENEWAL_TIME: Duration = Duration::from_secs(2);
