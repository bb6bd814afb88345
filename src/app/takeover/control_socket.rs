//! The control socket, on which a new process asks the running gateway to be taken over.

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

use super::control_directory;

/// The control socket. Dropping it closes it and removes its names.
#[derive(Debug)]
pub struct ControlSocket {
    /// `None`: there is none.
    bound: Option<BoundControlSocket>,
}

#[derive(Debug)]
struct BoundControlSocket {
    listener: UnixListener,
    paths: Vec<PathBuf>,
    /// Device and inode of the file, which tell it from a file that another process has put in its place.
    identity: (u64, u64),
}

/// A process of the same user that asks to take over.
#[derive(Debug)]
pub struct TakeoverRequest {
    pub(super) stream: UnixStream,
    pub(super) process: Option<u32>,
}

impl ControlSocket {
    /// No process can take over.
    pub fn none() -> Self {
        Self { bound: None }
    }

    /// Opens it in the first directory where that is possible, in the place of an earlier process's socket.
    pub fn open(names: &[String]) -> Self {
        for directory in control_directory::directories() {
            match open(&directory, names) {
                Ok(bound) => return Self { bound: Some(bound) },
                Err(error) => {
                    let directory = directory.display();
                    info!(%error, "cannot open the control socket in {directory}: {error}; trying the next directory");
                }
            }
        }
        warn!("there is no directory for the control socket: `--takeover` and SIGUSR2 will not find this process");
        Self::none()
    }

    /// Leaves the names to the process that has taken over. It opens its own control socket under them at this moment, and
    /// removing a name could remove that one.
    pub fn leave_names(&mut self) {
        if let Some(bound) = &mut self.bound {
            bound.paths.clear();
        }
    }

    /// The next process that asks to take over. May be dropped at any time and called again.
    pub async fn next(&self) -> TakeoverRequest {
        let Some(bound) = &self.bound else { return future::pending().await };
        loop {
            match bound.listener.accept().await {
                Ok((stream, _)) => {
                    if let Some(request) = authenticate(stream) {
                        return request;
                    }
                }
                Err(error) => {
                    warn!(%error, "cannot accept a connection on the control socket: {error}; trying again");
                    time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }
}

/// Refuses other users. The directory keeps most of them out, but not a privileged one.
fn authenticate(stream: UnixStream) -> Option<TakeoverRequest> {
    let credentials = stream.peer_cred().ok()?;
    if credentials.uid() != geteuid().as_raw() {
        warn!(user = credentials.uid(), "a process of another user asked to take over and is refused");
        return None;
    }
    let process = credentials.pid().and_then(|process| u32::try_from(process).ok());
    Some(TakeoverRequest { stream, process })
}

fn open(directory: &Path, names: &[String]) -> io::Result<BoundControlSocket> {
    control_directory::create(directory)?;
    // Bound under a name of its own first: a process that connects meanwhile finds the earlier socket or this one.
    let draft = directory.join(format!("{}.new", process::id()));
    remove(&draft)?;
    let listener = UnixListener::bind(&draft)?;
    let linked = link_to(directory, &draft, names);
    remove(&draft)?;
    let (paths, identity) = linked?;
    Ok(BoundControlSocket { listener, paths, identity })
}

fn link_to(directory: &Path, draft: &Path, names: &[String]) -> io::Result<(Vec<PathBuf>, (u64, u64))> {
    let metadata = fs::metadata(draft)?;
    let link = directory.join(format!("{}.link", process::id()));
    let paths: Vec<_> = names.iter().map(|name| directory.join(name)).collect();
    for path in &paths {
        remove(&link)?;
        fs::hard_link(draft, &link)?;
        fs::rename(&link, path)?;
    }
    Ok((paths, (metadata.dev(), metadata.ino())))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Drop for BoundControlSocket {
    fn drop(&mut self) {
        for path in &self.paths {
            let metadata = fs::symlink_metadata(path);
            if metadata.is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity) {
                drop(fs::remove_file(path));
            }
        }
    }
}

/// Between two attempts to accept while descriptors are short.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
