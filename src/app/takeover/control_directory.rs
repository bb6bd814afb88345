//! The directory and the names of control sockets, so that a process with the same configuration finds the gateway.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::fs::DirBuilder;
use std::hash::Hasher;
use std::io;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::path;
use std::path::Path;
use std::path::PathBuf;

use rustix::process::geteuid;
use siphasher::sip::SipHasher24;

use crate::app::Origin;
use crate::listen::ListenAddress;

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
