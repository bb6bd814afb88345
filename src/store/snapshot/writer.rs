//! Writes the snapshot to disk beside the path of requests.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task;
use tokio::time;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::state_file::SPARE;
use super::state_file::StateFile;
use crate::store::memory::MemoryStore;

/// The pause between writes of changes, unless writing takes long.
const PACE: Duration = Duration::from_secs(1);

/// Writing takes at most one part in this many of the time.
const IDLE_PARTS: u32 = 20;

/// At most so many bytes are written a second: a million sessions are 50 MB, and some of them change all the time.
const BYTES_PER_SECOND: u32 = 4 << 20;

/// Writes the snapshot, while no other process does.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// `None`: there is no snapshot.
    path: Option<PathBuf>,
    /// See [`SPARE`].
    spare: u64,
    state: Mutex<WriterState>,
}

#[derive(Debug, Default)]
struct WriterState {
    is_suspended: bool,
    /// `None`: this process has not begun one, or no longer knows what is in it.
    file: Option<StateFile>,
}

impl SnapshotWriter {
    pub fn new(path: Option<PathBuf>) -> Self {
        Self::with_spare(path, SPARE)
    }

    pub(super) fn with_spare(path: Option<PathBuf>, spare: u64) -> Self {
        Self { path, spare, state: Mutex::default() }
    }

    /// Stops writing, because the file belongs to another process now. No write is under way when this returns.
    pub fn suspend(&self) {
        *self.state.lock() = WriterState { is_suspended: true, file: None };
    }

    /// Writes again, because the other process has not taken over. It may have begun a file in place of the one there was,
    /// so this process begins one too.
    pub fn resume(&self) {
        self.state.lock().is_suspended = false;
    }

    /// Where there are changes to write, or the first state.
    pub(super) fn destination(&self, store: &MemoryStore) -> Option<PathBuf> {
        let path = self.path.as_ref()?;
        let state = self.state.lock();
        let is_due = !state.is_suspended && state.file.as_ref().is_none_or(|file| file.is_behind(store));
        is_due.then(|| path.clone())
    }

    /// Returns how many bytes were written.
    pub(super) fn write(&self, path: &Path, store: &MemoryStore) -> io::Result<u64> {
        let mut state = self.state.lock();
        if state.is_suspended {
            return Ok(0);
        }
        if let Some(mut file) = state.file.take().filter(|file| !file.is_over(path, store, self.spare)) {
            let before = file.length();
            if file.append(store)? {
                let appended = file.length() - before;
                state.file = Some(file);
                return Ok(appended);
            }
        }
        let file = state.file.insert(StateFile::begin(path, store)?);
        Ok(file.length())
    }

    /// Nothing can be appended to the file from now on.
    #[cfg(test)]
    pub(super) fn break_file(&self) {
        self.state.lock().file.as_mut().expect("a file").break_handle();
    }
}

/// Removes expired bans and writes changes until it is stopped, and then once more.
pub async fn write_changes(writer: Arc<SnapshotWriter>, store: Arc<MemoryStore>, stop: CancellationToken) {
    let mut pace = Duration::ZERO;
    let mut is_writable = true;
    loop {
        let is_last = stop.run_until_cancelled(time::sleep(pace)).await.is_none();
        store.bans().remove_expired();
        store.remove_expired_sessions();
        pace = PACE;
        if let Some(path) = writer.destination(&store) {
            let begun = Instant::now();
            let (with, to, of) = (Arc::clone(&writer), path.clone(), Arc::clone(&store));
            let outcome = task::spawn_blocking(move || with.write(&to, &of)).await;
            pace = pace.max(begun.elapsed() * IDLE_PARTS);
            match outcome.unwrap_or_else(|error| Err(io::Error::other(error))) {
                Ok(bytes) => {
                    is_writable = true;
                    pace = pace.max(Duration::from_secs(bytes) / BYTES_PER_SECOND);
                }
                Err(error) => {
                    if is_writable {
                        let name = path.display();
                        warn!(file = %name, "{name}: {error}: a restart would lose bans, known clients and sessions; the gateway tries again");
                    }
                    is_writable = false;
                }
            }
        }
        if is_last {
            return;
        }
    }
}
