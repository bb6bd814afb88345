//! The tasks that ask sources while the gateway runs: for the members of lists, and for the keys of tokens.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::{task, time};
use tokio_util::sync::CancellationToken;

use super::followed_lists::{FollowTasks, OpenLists};
use super::token_keys::{KeyTask, OpenKeys};
use crate::upstream::Upstream;
use crate::upstream::resolve::run_background_tasks;
use crate::words::files::{LastSeen, WatchedFile};

/// The running tasks.
#[derive(Debug)]
pub(super) struct SourceTasks {
    lists: FollowTasks,
    keys: KeyTask,
}

impl SourceTasks {
    /// Nothing runs yet.
    pub(super) fn of(keys: OpenKeys) -> Self {
        Self { lists: FollowTasks::default(), keys: KeyTask::of(keys) }
    }

    /// Asks the sources of these lists, and no others.
    pub(super) fn follow_lists(&mut self, lists: &OpenLists) {
        self.lists.follow(lists);
    }

    /// Asks for the keys in force.
    pub(super) fn follow_keys(&mut self) {
        self.keys.start();
    }

    /// These keys come into force.
    pub(super) fn replace_keys(&mut self, keys: OpenKeys) {
        self.keys.replace(keys);
    }

    /// The keys in force that tokens are verified with.
    pub(super) fn keys(&self) -> &OpenKeys {
        self.keys.keys()
    }

    /// Stops the task. The known decisions stay.
    pub(super) fn stop(&mut self) {
        self.lists.stop();
        self.keys.stop();
    }
}

// How long to wait before a source that did not answer is asked again.

/// After the first failure.
const FIRST: Duration = Duration::from_millis(500);

/// By how much pauses differ at most, so that gateways that lost a source together do not come back together.
const SPREAD: f64 = 0.2;

/// Pauses that grow with each failure in a row.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    pub(super) fn up_to(longest: Duration) -> Self {
        Self { next: FIRST.min(longest), longest }
    }

    /// The next pause. `random` is from 0 to 1.
    pub(super) fn next(&mut self, random: f64) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause.mul_f64(1.0 + SPREAD * (2.0 * random - 1.0))
    }

    /// The source has answered.
    pub(super) fn reset(&mut self) {
        self.next = FIRST.min(self.longest);
    }
}

// One background task for each upstream in force, for its health checks among other things.

/// The running tasks.
#[derive(Debug, Default)]
pub struct UpstreamTasks(Vec<(Arc<Upstream>, CancellationToken)>);

impl UpstreamTasks {
    /// Starts tasks for new upstreams, and stops the tasks of upstreams that are gone.
    pub fn follow(&mut self, upstreams: &[Arc<Upstream>]) {
        let gone = self.0.extract_if(.., |(known, _)| !upstreams.iter().any(|upstream| Arc::ptr_eq(known, upstream)));
        for (_, stop) in gone {
            stop.cancel();
        }
        for upstream in upstreams {
            if !self.0.iter().any(|(known, _)| Arc::ptr_eq(known, upstream)) {
                let stop = CancellationToken::new();
                tokio::spawn(run_background_tasks(Arc::clone(upstream), stop.clone()));
                self.0.push((Arc::clone(upstream), stop));
            }
        }
    }
}

// Notices that a file has changed.

// Notices that a file has changed.
//
// Files are polled: polling also notices a link that is switched to another directory, a rename over the old file, and
// changes on a network file system.

/// How often files are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long a file must stay the same before it counts as completely written.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// The files of a configuration as they were last seen.
#[derive(Debug, Default)]
pub struct FileWatcher {
    seen: Vec<WatchedFile>,
    /// The poll under way. One thread waits for a file system that hangs, not one for each poll.
    polling: Option<JoinHandle<Observations>>,
    /// A file has changed, and [`FileWatcher::changed`] has not returned since.
    is_changed: bool,
}

/// Each path, and the file that was found there.
type Observations = Vec<(PathBuf, LastSeen)>;

impl FileWatcher {
    /// Watches `files` from the state in which they were read. A file that is watched already keeps the state in which it
    /// was last seen, so that a change in between is not missed.
    pub fn follow(&mut self, files: &[WatchedFile]) {
        if files.iter().map(|file| &file.path).eq(self.seen.iter().map(|file| &file.path)) {
            return;
        }
        let before = std::mem::take(&mut self.seen);
        let known = |file: &WatchedFile| before.iter().find(|known| known.path == file.path).cloned();
        self.seen = files.iter().map(|file| known(file).unwrap_or_else(|| file.clone())).collect();
    }

    /// Returns when a file has changed and no file changes any more. May be dropped at any time and called again.
    pub async fn changed(&mut self) {
        if self.seen.iter().any(|file| file.seen == LastSeen::Never) {
            self.poll().await;
        }
        while !self.is_changed {
            time::sleep(POLL_INTERVAL).await;
            self.poll().await;
        }
        loop {
            time::sleep(SETTLE_TIME).await;
            if !self.poll().await {
                break;
            }
        }
        self.is_changed = false;
    }

    /// Whether any file differs from how it was last seen.
    async fn poll(&mut self) -> bool {
        let polling = self.polling.get_or_insert_with(|| {
            let paths: Vec<PathBuf> = self.seen.iter().map(|file| file.path.clone()).collect();
            let observe = |path: PathBuf| (LastSeen::now(&path), path);
            task::spawn_blocking(move || paths.into_iter().map(observe).map(|(seen, path)| (path, seen)).collect())
        });
        let observations = polling.await.unwrap_or_default();
        self.polling = None;
        let mut changed = false;
        for WatchedFile { path, seen } in &mut self.seen {
            let Some((_, now)) = observations.iter().find(|(observed, _)| observed == path) else { continue };
            changed |= *seen != LastSeen::Never && seen != now;
            *seen = *now;
        }
        self.is_changed |= changed;
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn files<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Vec<WatchedFile> {
        paths.into_iter().map(WatchedFile::as_it_is).collect()
    }

    #[tokio::test]
    async fn a_changed_file_is_noticed_and_an_unchanged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (config, list) = (folder.path().join("portcullis.yaml"), folder.path().join("list.txt"));
        fs::write(&config, "a").unwrap();
        fs::write(&list, "a").unwrap();
        let mut watcher = FileWatcher::default();
        watcher.follow(&files([&*config, &*list]));
        assert!(!watcher.poll().await);
        fs::write(&list, "ab").unwrap();
        assert!(watcher.poll().await);
        assert!(!watcher.poll().await);
    }

    #[tokio::test]
    async fn a_change_between_the_reading_and_the_first_poll_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        fs::write(&file, "a").unwrap();
        let read = files([&*file]);
        fs::write(&file, "ab").unwrap();
        let mut watcher = FileWatcher::default();
        watcher.follow(&read);
        assert!(watcher.poll().await);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_that_points_elsewhere_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for version in ["v1", "v2"] {
            fs::create_dir(path(version)).unwrap();
            fs::write(path(version).join("portcullis.yaml"), "same").unwrap();
        }
        std::os::unix::fs::symlink(path("v1"), path("current")).unwrap();
        let mut watcher = FileWatcher::default();
        watcher.follow(&files([&*path("current").join("portcullis.yaml")]));

        std::os::unix::fs::symlink(path("v2"), path("next")).unwrap();
        fs::rename(path("next"), path("current")).unwrap();
        assert!(watcher.poll().await);
    }

    #[tokio::test]
    async fn a_removed_file_and_a_new_file_are_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        let mut watcher = FileWatcher::default();
        watcher.follow(&files([&*file]));
        fs::write(&file, "a").unwrap();
        assert!(watcher.poll().await);
        fs::remove_file(&file).unwrap();
        assert!(watcher.poll().await);
    }

    #[tokio::test]
    async fn following_again_misses_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        fs::write(&file, "a").unwrap();
        let mut watcher = FileWatcher::default();
        watcher.follow(&files([&*file]));
        fs::write(&file, "ab").unwrap();
        watcher.follow(&files([&*file, &*file.with_extension("txt")]));
        assert!(watcher.poll().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_was_seen_is_reported_even_when_the_wait_for_it_was_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        fs::write(&file, "a").unwrap();
        let mut watcher = FileWatcher::default();
        watcher.follow(&files([&*file]));
        fs::write(&file, "ab").unwrap();
        assert!(watcher.poll().await);
        drop(time::timeout(Duration::ZERO, watcher.changed()).await);
        watcher.changed().await;
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_an_answer() {
        let mut pauses = Pauses::up_to(Duration::from_secs(3));
        let millis: Vec<_> = (0..5).map(|_| pauses.next(0.5).as_millis()).collect();
        assert_eq!(millis, [500, 1000, 2000, 3000, 3000]);
        pauses.reset();
        assert_eq!(pauses.next(0.0), Duration::from_millis(400));
        assert_eq!(pauses.next(1.0), Duration::from_millis(1200));
    }
}
