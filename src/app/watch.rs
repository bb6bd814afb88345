//! Notices that a file has changed.
//!
//! Files are asked for, not waited on: a link that is switched to another directory, a rename over the old file and a
//! network file system all look alike this way.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::SystemTime;

use tokio::task;
use tokio::task::JoinHandle;
use tokio::time;

/// How often files are looked at.
const EVERY: Duration = Duration::from_millis(500);

/// How long a file must stay as it is to be taken for finished.
const SETTLED: Duration = Duration::from_millis(50);

/// The files of a configuration as they were last seen.
#[derive(Debug, Default)]
pub struct Watch {
    seen: Vec<(PathBuf, Seen)>,
    /// A look under way. A file system that hangs has one thread wait for it, and not one for each look.
    looking: Option<JoinHandle<Looks>>,
    /// A file has changed, which is yet to be told.
    is_changed: bool,
}

/// What was found where; `None`: no file.
type Looks = Vec<(PathBuf, Option<Look>)>;

/// A file as it was last seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Seen {
    /// Nobody has looked yet.
    Never,
    /// `None` where there is no file.
    As(Option<Look>),
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Look {
    modified: Option<SystemTime>,
    length: u64,
    /// Device and number: another file in the place of this one.
    identity: (u64, u64),
}

impl Watch {
    /// Watches `files` from their present state on. What is watched already keeps the state in which it was last seen,
    /// so that a change in between is not missed.
    pub fn follow(&mut self, files: &[PathBuf]) {
        if files.iter().eq(self.seen.iter().map(|(path, _)| path)) {
            return;
        }
        let before = std::mem::take(&mut self.seen);
        let known = |file: &PathBuf| before.iter().find(|(path, _)| path == file).map(|(_, seen)| *seen);
        self.seen = files.iter().map(|file| (file.clone(), known(file).unwrap_or(Seen::Never))).collect();
    }

    /// Returns when a file has changed and every file has come to rest. May be dropped at any time and called again.
    pub async fn changed(&mut self) {
        if self.seen.iter().any(|(_, seen)| *seen == Seen::Never) {
            self.look_again().await;
        }
        while !self.is_changed {
            time::sleep(EVERY).await;
            self.look_again().await;
        }
        loop {
            time::sleep(SETTLED).await;
            if !self.look_again().await {
                break;
            }
        }
        self.is_changed = false;
    }

    /// Whether any file is not as it was last seen.
    async fn look_again(&mut self) -> bool {
        let looking = self.looking.get_or_insert_with(|| {
            let paths: Vec<PathBuf> = self.seen.iter().map(|(path, _)| path.clone()).collect();
            let look = |path: PathBuf| (look(&path), path);
            task::spawn_blocking(move || paths.into_iter().map(look).map(|(look, path)| (path, look)).collect())
        });
        let looks = looking.await.unwrap_or_default();
        self.looking = None;
        let mut changed = false;
        for (path, seen) in &mut self.seen {
            let Some((_, look)) = looks.iter().find(|(looked_at, _)| looked_at == path) else { continue };
            let now = Seen::As(*look);
            changed |= *seen != Seen::Never && *seen != now;
            *seen = now;
        }
        self.is_changed |= changed;
        changed
    }
}

#[cfg(unix)]
fn look(file: &Path) -> Option<Look> {
    use std::os::unix::fs::MetadataExt;

    let metadata = fs::metadata(file).ok()?;
    let identity = (metadata.dev(), metadata.ino());
    Some(Look { modified: metadata.modified().ok(), length: metadata.len(), identity })
}

#[cfg(not(unix))]
fn look(file: &Path) -> Option<Look> {
    let metadata = fs::metadata(file).ok()?;
    Some(Look { modified: metadata.modified().ok(), length: metadata.len(), identity: (0, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_changed_file_is_noticed_and_an_unchanged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (config, list) = (folder.path().join("portcullis.yaml"), folder.path().join("list.txt"));
        fs::write(&config, "a").unwrap();
        fs::write(&list, "a").unwrap();
        let mut watch = Watch::default();
        watch.follow(&[config, list.clone()]);
        watch.look_again().await;
        assert!(!watch.look_again().await);
        fs::write(&list, "ab").unwrap();
        assert!(watch.look_again().await);
        assert!(!watch.look_again().await);
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
        let mut watch = Watch::default();
        watch.follow(&[path("current").join("portcullis.yaml")]);
        watch.look_again().await;

        std::os::unix::fs::symlink(path("v2"), path("next")).unwrap();
        fs::rename(path("next"), path("current")).unwrap();
        assert!(watch.look_again().await);
    }

    #[tokio::test]
    async fn a_file_that_goes_and_one_that_comes_are_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        let mut watch = Watch::default();
        watch.follow(std::slice::from_ref(&file));
        watch.look_again().await;
        fs::write(&file, "a").unwrap();
        assert!(watch.look_again().await);
        fs::remove_file(&file).unwrap();
        assert!(watch.look_again().await);
    }

    #[tokio::test]
    async fn following_again_forgets_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        fs::write(&file, "a").unwrap();
        let mut watch = Watch::default();
        watch.follow(std::slice::from_ref(&file));
        watch.look_again().await;
        fs::write(&file, "ab").unwrap();
        watch.follow(&[file.clone(), file.with_extension("txt")]);
        assert!(watch.look_again().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_was_seen_is_told_however_often_the_wait_for_it_is_broken_off() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        fs::write(&file, "a").unwrap();
        let mut watch = Watch::default();
        watch.follow(std::slice::from_ref(&file));
        watch.look_again().await;
        fs::write(&file, "ab").unwrap();
        assert!(watch.look_again().await);
        drop(time::timeout(Duration::ZERO, watch.changed()).await);
        watch.changed().await;
    }
}
