//! Opens listening Unix sockets, and keeps their files.

use std::fs;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use rustix::fs::Mode;
use rustix::fs::fchmod;
use socket2::Domain;
use socket2::SockAddr;
use socket2::Socket;
use socket2::Type;

use super::bind::BACKLOG;

/// The file of a Unix socket that this process has opened.
#[derive(Debug)]
pub struct SocketFile {
    path: Arc<str>,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// Removes the file, unless it is another process' by now.
    pub fn remove(&self) {
        let is_same = |file: fs::Metadata| (file.dev(), file.ino()) == (self.device, self.inode);
        if fs::symlink_metadata(&*self.path).is_ok_and(is_same) {
            // A file that stays is replaced by the next gateway that listens there.
            drop(fs::remove_file(&*self.path));
        }
    }
}

/// Opens a Unix socket at `path`, whose file has this mode. A file that a gateway has left behind is replaced. Fails if a process
/// listens there.
pub fn bind_unix(path: &Arc<str>, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    let address = SockAddr::unix(&**path)?;
    remove_abandoned(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // The file is made with this mode, less the umask: nobody may connect before the next line who may not after it.
    fchmod(&socket, Mode::from_raw_mode(mode))?;
    socket.bind(&address)?;
    set_mode(path, mode)?;
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    let file = fs::symlink_metadata(&**path)?;
    Ok((socket.into(), SocketFile { path: Arc::clone(path), device: file.dev(), inode: file.ino() }))
}

/// Who may connect to the Unix socket at `path`.
pub fn set_mode(path: &str, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Removes the file of a socket that nobody listens on any more.
fn remove_abandoned(path: &str, address: &SockAddr) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file is there that is no socket"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let caller = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A process that listens and accepts nothing is not waited for.
    caller.set_nonblocking(true)?;
    match caller.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(folder: &tempfile::TempDir) -> Arc<str> {
        folder.path().join("gateway.sock").to_str().unwrap().into()
    }

    fn mode_of(path: &str) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_socket_that_is_listened_on_is_not_taken_and_one_that_was_left_behind_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder);
        let (listening, _) = bind_unix(&path, 0o660).unwrap();
        assert_eq!(bind_unix(&path, 0o660).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listening);
        bind_unix(&path, 0o660).unwrap();
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder);
        fs::write(&*path, "kept").unwrap();
        assert_eq!(bind_unix(&path, 0o660).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&*path).unwrap(), b"kept");
    }

    #[test]
    fn the_file_has_the_mode_whatever_the_umask_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder);
        let (_listening, _) = bind_unix(&path, 0o666).unwrap();
        assert_eq!(mode_of(&path), 0o666);
        set_mode(&path, 0o600).unwrap();
        assert_eq!(mode_of(&path), 0o600);
    }

    #[test]
    fn only_the_file_that_was_made_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = at(&folder);
        let (listening, first) = bind_unix(&path, 0o660).unwrap();
        drop(listening);
        let (_listening, second) = bind_unix(&path, 0o660).unwrap();
        if first.inode != second.inode {
            first.remove();
            assert!(fs::exists(&*path).unwrap());
        }
        second.remove();
        assert!(!fs::exists(&*path).unwrap());
    }
}
