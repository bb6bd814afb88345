//! The control socket, on which a new process asks the running gateway to be taken over.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::hash::Hasher;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, future, io, path, process};

use rustix::process::geteuid;
use siphasher::sip::SipHasher24;
use tokio::net::{UnixListener, UnixStream};
use tokio::time;
use tracing::{info, warn};

use crate::app::Origin;
use crate::listen::ListenAddress;

/// Between two attempts to accept while descriptors are short.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

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
        for directory in directories() {
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
    create(directory)?;
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
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
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

// The directory and the names of control sockets, so that a process with the same configuration finds the gateway.

/// The names of a gateway's control socket. A configuration file has two: one for its path as given, one for the file that
/// its links lead to, for a link may be switched to another version. A gateway without a file is known by its addresses.
pub fn socket_names(origin: &Origin, addresses: &[ListenAddress]) -> Vec<String> {
    let file = match origin {
        Origin::Flags | Origin::StandardInput => {
            let addresses: Vec<_> = addresses.iter().map(ListenAddress::to_string).collect();
            return vec![name("flags", addresses.join(" ").as_bytes())];
        }
        Origin::File(file) => file,
    };
    let paths = [path::absolute(file), fs::canonicalize(file)];
    let mut names: Vec<_> = paths.iter().flatten().map(|path| name("file", path.as_os_str().as_bytes())).collect();
    names.dedup();
    names
}

fn name(kind: &str, identity: &[u8]) -> String {
    let mut hasher = SipHasher24::new();
    hasher.write(kind.as_bytes());
    hasher.write_u8(0);
    hasher.write(identity);
    format!("{:016x}", hasher.finish())
}

/// The directories a control socket may be in, the best first.
pub(super) fn directories() -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    let of_session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut temporary = OsString::from("portcullis-");
    temporary.push(user.to_string());
    of_session
        .map(|path| path.join("portcullis"))
        .into_iter()
        .chain([PathBuf::from("/run/portcullis"), env::temp_dir().join(temporary)])
        .collect()
}

/// Creates the directory if it is missing.
pub(super) fn create(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => check(directory),
    }
}

/// Fails unless only this user can have put anything there.
pub(super) fn check(directory: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(directory)?;
    let refused = |why| Err(io::Error::new(ErrorKind::PermissionDenied, why));
    if !metadata.is_dir() {
        return refused("it is not a directory");
    }
    if metadata.uid() != geteuid().as_raw() {
        return refused("it belongs to another user");
    }
    if metadata.mode() & 0o077 != 0 {
        return refused("other users may enter it; set its mode to 0700");
    }
    Ok(())
}
