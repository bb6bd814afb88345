//! Notices that a file has changed.
//!
//! Files are asked for, not waited on: a link that is switched to another directory, a rename over the old file and a
//! network file system all look alike this way.

use std::path::PathBuf;
use std::time::Duration;

use tokio::task;
use tokio::task::JoinHandle;
use tokio::time;

use crate::files::Seen;
use crate::files::Watched;

/// How often files are looked at.
const EVERY: Duration = Duration::from_millis(500);

/// How long a file must stay as it is to be taken for finished.
const SETTLED: Duration = Duration::from_millis(50);

/// The files of a configuration as they were last seen.
#[derive(Debug, Default)]
pub struct Watch {
    seen: Vec<Watched>,
    /// A look under way. A file system that hangs has one thread wait for it, and not one for each look.
    looking: Option<JoinHandle<Looks>>,
    /// A file has changed, which is yet to be told.
    is_changed: bool,
}

/// What was found where.
type Looks = Vec<(PathBuf, Seen)>;

impl Watch {
    /// Watches `files` from the state in which they were read. What is watched already keeps the state in which it was
    /// last seen, so that a change in between is not missed.
    pub fn follow(&mut self, files: &[Watched]) {
        if files.iter().map(|file| &file.path).eq(self.seen.iter().map(|file| &file.path)) {
            return;
        }
        let before = std::mem::take(&mut self.seen);
        let known = |file: &Watched| before.iter().find(|known| known.path == file.path).cloned();
        self.seen = files.iter().map(|file| known(file).unwrap_or_else(|| file.clone())).collect();
    }

    /// Returns when a file has changed and every file has come to rest. May be dropped at any time and called again.
    pub async fn changed(&mut self) {
        if self.seen.iter().any(|file| file.seen == Seen::Never) {
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
            let paths: Vec<PathBuf> = self.seen.iter().map(|file| file.path.clone()).collect();
            let look = |path: PathBuf| (Seen::now(&path), path);
            task::spawn_blocking(move || paths.into_iter().map(look).map(|(seen, path)| (path, seen)).collect())
        });
        let looks = looking.await.unwrap_or_default();
        self.looking = None;
        let mut changed = false;
        for Watched { path, seen } in &mut self.seen {
            let Some((_, now)) = looks.iter().find(|(looked_at, _)| looked_at == path) else { continue };
            changed |= *seen != Seen::Never && seen != now;
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

    fn files<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Vec<Watched> {
        paths.into_iter().map(Watched::as_it_is).collect()
    }

    #[tokio::test]
    async fn a_changed_file_is_noticed_and_an_unchanged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (config, list) = (folder.path().join("portcullis.yaml"), folder.path().join("list.txt"));
        fs::write(&config, "a").unwrap();
        fs::write(&list, "a").unwrap();
        let mut watch = Watch::default();
        watch.follow(&files([&*config, &*list]));
        assert!(!watch.look_again().await);
        fs::write(&list, "ab").unwrap();
        assert!(watch.look_again().await);
        assert!(!watch.look_again().await);
    }

    #[tokio::test]
    async fn a_change_between_the_reading_and_the_first_look_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        fs::write(&file, "a").unwrap();
        let read = files([&*file]);
        fs::write(&file, "ab").unwrap();
        let mut watch = Watch::default();
        watch.follow(&read);
        assert!(watch.look_again().await);
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
        watch.follow(&files([&*path("current").join("portcullis.yaml")]));

        std::os::unix::fs::symlink(path("v2"), path("next")).unwrap();
        fs::rename(path("next"), path("current")).unwrap();
        assert!(watch.look_again().await);
    }

    #[tokio::test]
    async fn a_file_that_goes_and_one_that_comes_are_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        let mut watch = Watch::default();
        watch.follow(&files([&*file]));
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
        watch.follow(&files([&*file]));
        fs::write(&file, "ab").unwrap();
        watch.follow(&files([&*file, &*file.with_extension("txt")]));
        assert!(watch.look_again().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_was_seen_is_told_however_often_the_wait_for_it_is_broken_off() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        fs::write(&file, "a").unwrap();
        let mut watch = Watch::default();
        watch.follow(&files([&*file]));
        fs::write(&file, "ab").unwrap();
        assert!(watch.look_again().await);
        drop(time::timeout(Duration::ZERO, watch.changed()).await);
        watch.changed().await;
    }
}
