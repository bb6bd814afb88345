//! Reads the snapshot of the last process when the gateway starts.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use std::time::UNIX_EPOCH;

use tracing::info;
use tracing::warn;

use super::correction::ClockCorrection;
use super::replay::Replayed;
use super::replay::Unreadable;
use super::replay::replay;
use super::state_file::beside;
use crate::clock;
use crate::clock::Timestamp;
use crate::files;
use crate::store::memory::MemoryStore;
use crate::units::counted;

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
}

/// Reads the snapshot of the last process. If the file cannot be read, this logs a warning and the gateway starts
/// without it.
pub fn restore(path: &Path, store: &mut MemoryStore) {
    let name = path.display();
    let replayed = match read(path) {
        Ok(replayed) => replayed,
        Err(SnapshotError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            let kept = if matches!(error, SnapshotError::Unreadable(_)) { keep(path) } else { String::new() };
            warn!(file = %name, "{name}: {error}: earlier bans, known clients and sessions are lost{kept}");
            return;
        }
    };
    let Replayed { mut content, mut sessions, torn, damaged, is_cut_short } = replayed;
    if damaged > 0 || is_cut_short {
        let (lost, kept) = (damaged + torn, keep(path));
        warn!(
            file = %name, lost,
            "{name}: the snapshot is damaged, {} of it cannot be read: some bans, known clients and sessions are lost, and \
             some that had ended may be back{kept}",
            counted(lost, "byte")
        );
    } else if torn > 0 {
        let cut = counted(torn, "byte");
        warn!(file = %name, torn, "{name}: the last {cut} were not written whole when the last process ended, and are cut off");
    }
    let correction = ClockCorrection::of(&content, &sessions, written_ahead(path), store.now());
    if correction.behind >= NOTABLE {
        let behind_seconds = correction.behind.as_secs();
        warn!(
            file = %name, behind_seconds,
            "{name}: the clock is {behind_seconds} s behind the last moment in the snapshot: it was wrong then, or is now; bans, \
             known clients and sessions last no longer than they would have"
        );
    }
    correction.apply(&mut content, &mut sessions);
    let (bans, known, count) = (content.bans.len(), content.known.len(), sessions.len());
    store.hash_with(content.secret);
    content.put_into(store);
    store.restore_sessions(sessions);
    info!(file = %name, "{name}: read {bans} bans, the known clients of {known} names and {count} sessions");
}

/// How far the wall clock is behind the last write of the file.
fn written_ahead(path: &Path) -> Duration {
    let written = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let written = written.and_then(|written| written.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    (Timestamp::EPOCH + written).since(clock::wall())
}

/// Clocks are corrected by less than this all the time.
const NOTABLE: Duration = Duration::from_secs(5);

fn read(path: &Path) -> Result<Replayed, SnapshotError> {
    let bytes = files::read(path, u64::MAX - 1)?.ok_or(Unreadable::Damaged)?;
    Ok(replay(&bytes)?)
}

/// Keeps the file under another name, for people: this process writes another one. Says so.
fn keep(path: &Path) -> String {
    let aside = beside(path, ".damaged");
    // A second name and not another one: until the other file is written, this one is all there is.
    drop(fs::remove_file(&aside));
    match fs::hard_link(path, &aside) {
        Ok(()) => format!("; the file is kept as {}", aside.display()),
        Err(_) => String::new(),
    }
}
