//! Where a running gateway is found by whoever is to take over.

use std::fs;
use std::future;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::process;
use std::time::Duration;

use rustix::process::geteuid;
use tokio::net::UnixListener;
use tokio::net::UnixStream;
use tokio::time;
use tracing::info;
use tracing::warn;

use super::place;

/// An open hatch; closed, and its name taken away, when it is dropped.
#[derive(Debug)]
pub struct Hatch {
    /// `None`: there is no place for one.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    listener: UnixListener,
    paths: Vec<PathBuf>,
    /// Device and number of the file, which tell it from one that another process has put in its place.
    identity: (u64, u64),
}

/// Who knocked, and is of the same user.
#[derive(Debug)]
pub struct Heir {
    pub(super) stream: UnixStream,
    pub(super) process: Option<u32>,
}

impl Hatch {
    /// Nobody can come in.
    pub fn closed() -> Self {
        Self { open: None }
    }

    /// Opens it in the first directory where that is possible. The hatch of a process before this one is replaced.
    pub fn open(names: &[String]) -> Self {
        for directory in place::directories() {
            match open(&directory, names) {
                Ok(open) => return Self { open: Some(open) },
                Err(error) => {
                    info!(%error, "{}: {error}: no other process can knock there", directory.display());
                }
            }
        }
        warn!("there is no directory for the control socket: `--takeover` and SIGUSR2 will not find this process");
        Self::closed()
    }

    /// Leaves the names to the process that has taken over. It opens its own hatch under them at this moment, and
    /// removing a name could hit that one.
    pub fn leave_names(&mut self) {
        if let Some(open) = &mut self.open {
            open.paths.clear();
        }
    }

    /// The next who knocks. May be dropped at any time and called again.
    pub async fn next(&self) -> Heir {
        let Some(open) = &self.open else { return future::pending().await };
        loop {
            match open.listener.accept().await {
                Ok((stream, _)) => {
                    if let Some(heir) = recognize(stream) {
                        return heir;
                    }
                }
                Err(error) => {
                    warn!(%error, "cannot hear who wants to take over, trying on");
                    time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// The directory keeps others out; this is for those whom that does not stop.
fn recognize(stream: UnixStream) -> Option<Heir> {
    let credentials = stream.peer_cred().ok()?;
    if credentials.uid() != geteuid().as_raw() {
        warn!(user = credentials.uid(), "a process of another user is not handed anything");
        return None;
    }
    let process = credentials.pid().and_then(|process| u32::try_from(process).ok());
    Some(Heir { stream, process })
}

fn open(directory: &Path, names: &[String]) -> io::Result<Open> {
    place::make(directory)?;
    // Under a name of its own first: whoever looks meanwhile finds the hatch of before, or this one.
    let draft = directory.join(format!("{}.new", process::id()));
    remove(&draft)?;
    let listener = UnixListener::bind(&draft)?;
    let linked = link_to(directory, &draft, names);
    remove(&draft)?;
    let (paths, identity) = linked?;
    Ok(Open { listener, paths, identity })
}

fn link_to(directory: &Path, draft: &Path, names: &[String]) -> io::Result<(Vec<PathBuf>, (u64, u64))> {
    let found = fs::metadata(draft)?;
    let link = directory.join(format!("{}.link", process::id()));
    let paths: Vec<_> = names.iter().map(|name| directory.join(name)).collect();
    for path in &paths {
        remove(&link)?;
        fs::hard_link(draft, &link)?;
        fs::rename(&link, path)?;
    }
    Ok((paths, (found.dev(), found.ino())))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        for path in &self.paths {
            let found = fs::symlink_metadata(path);
            if found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity) {
                drop(fs::remove_file(path));
            }
        }
    }
}

/// Between two attempts while descriptors are short.
const PAUSE: Duration = Duration::from_secs(1);
