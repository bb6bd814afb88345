//! Reloads as they are asked for: one at a time, read on a thread of its own, so that a file system that hangs stands
//! between no signal and its effect.

use std::future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time;
use tokio::time::Instant;
use tracing::debug;
use tracing::info;
use tracing::warn;

use super::App;
use super::reload::Draft;
use super::reload::Refused;
use super::serve::Origin;
use super::service_manager;

/// The reload under way, and what is to follow it.
#[derive(Default)]
pub(super) struct Reloads {
    under_way: Option<UnderWay>,
    /// Somebody asked while one was under way, which may have read its files before.
    is_asked_again: bool,
    /// A certificate and its key are two files, and seldom change in one moment. While one of them is still the old one
    /// they do not belong together, which is told only if it lasts.
    half_renewed_since: Option<Instant>,
}

struct UnderWay {
    reading: JoinHandle<Result<Box<Draft>, Refused>>,
    /// Nobody asked but a file that has changed.
    is_by_change: bool,
}

/// What happens next.
pub(super) enum Next {
    Read(Result<Box<Draft>, Refused>),
    /// A certificate and its key do not belong together for too long.
    StaysHalfRenewed,
}

impl Reloads {
    /// By somebody who is to be answered.
    pub(super) fn ask(&mut self, app: &App, origin: &Origin) {
        let why_not = match origin {
            Origin::File(_) => return self.ask_for_file(app),
            Origin::Flags => "the configuration is the command line",
            Origin::StandardInput => "the configuration came from standard input, which cannot be read again",
        };
        service_manager::reloading();
        info!("nothing to reload: {why_not}");
        service_manager::ready(false);
    }

    fn ask_for_file(&mut self, app: &App) {
        self.half_renewed_since = None;
        if self.is_under_way() {
            self.is_asked_again = true;
            return warn!("a reload is under way, and its files are not read yet; another one follows it");
        }
        self.begin(app, false);
    }

    /// A file has changed.
    pub(super) fn changed(&mut self, app: &App) {
        self.begin(app, true);
    }

    fn begin(&mut self, app: &App, is_by_change: bool) {
        service_manager::reloading();
        self.under_way = Some(UnderWay { reading: app.begin_reload(), is_by_change });
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Returns when there is something to [`go_on`](Self::go_on) with. May be dropped at any time and called again.
    pub(super) async fn next(&mut self) -> Next {
        if let Some(UnderWay { reading, .. }) = &mut self.under_way {
            return Next::Read(reading.await.unwrap_or(Err(Refused::Defect)));
        }
        match self.half_renewed_since {
            Some(since) => time::sleep_until(since + RENEWING).await,
            None => future::pending().await,
        }
        Next::StaysHalfRenewed
    }

    pub(super) fn go_on(&mut self, app: &mut App, next: Next) {
        let read = match next {
            Next::Read(read) => read,
            Next::StaysHalfRenewed => return self.ask_for_file(app),
        };
        let is_by_change = self.under_way.take().is_some_and(|under_way| under_way.is_by_change);
        if is_by_change && !self.is_asked_again && read.as_ref().is_err_and(Refused::is_of_a_pair) {
            debug!("a key does not belong to its certificate, perhaps one of them is yet to be renewed");
            self.half_renewed_since.get_or_insert_with(Instant::now);
        } else {
            // What comes of it is in the log already.
            drop(app.finish_reload(read));
            self.half_renewed_since = None;
        }
        service_manager::ready(false);
        if std::mem::take(&mut self.is_asked_again) {
            self.begin(app, false);
        }
    }
}

/// How long renewing a certificate and its key may take.
const RENEWING: Duration = Duration::from_secs(2);
