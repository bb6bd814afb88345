//! Opens files whose names come from operators, so that no file can block the gateway or be read without end.
//!
//! Opening a FIFO blocks until another process opens its other end. A device may be endless, and opening it may have side
//! effects. So the gateway reads only regular files, after following links. It may write to a FIFO that has a reader.

use std::fs::{File, FileType, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use rustix::io::Errno;

/// Opens a regular file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    // Checked before it is opened, because opening a device may have side effects, and after, because the name may lead to
    // another file by then.
    regular(fs::metadata(path)?.file_type())?;
    let file = OpenOptions::new().read(true).custom_flags(without_blocking()).open(path)?;
    regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes; `None`: it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = open(path)?;
    let expected = file.metadata().map_or(0, |metadata| metadata.len().min(most));
    read_to_end(file, expected, most)
}

/// Reads a stream of at most `most` bytes to its end; `None`: there are more.
pub fn read_to_end(stream: impl Read, expected: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    stream.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Checks that a path leads to a regular file, or to no file yet.
pub fn check_regular_or_absent(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) => regular(metadata.file_type()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks that lines can be appended to the file at a path, if there is one.
pub fn check_appendable(path: &Path) -> io::Result<()> {
    match fs::metadata(path).map(|metadata| metadata.file_type()) {
        Ok(found) if found.is_fifo() || found.is_char_device() => Ok(()),
        Ok(found) => regular(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks that the file at a path could be opened for writing, or created if there is none, without doing either.
pub fn check_writable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(_) => Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?),
        // A link to a file that is not there yet: the file would be created where it leads.
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_ok() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => check_folder_writable(path),
        Err(error) => Err(error),
    }
}

/// Checks that files could be put beside the file at a path, without doing so.
pub fn check_folder_writable(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// Creates a regular file with this mode, less the umask, if there is none.
pub fn create(path: &Path, mode: u32) -> io::Result<()> {
    check_regular_or_absent(path)?;
    OpenOptions::new().append(true).create(true).mode(mode).custom_flags(without_blocking()).open(path).map(drop)
}

/// A file that is read, with its state before the read: a state taken after it could hide a change in between.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WatchedFile {
    pub path: PathBuf,
    pub seen: LastSeen,
}

/// The state of a file at the last look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LastSeen {
    /// There was no look yet.
    Never,
    /// `None`: there was no file.
    As(Option<FileStamp>),
}

/// Distinguishes states of a file without reading it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileStamp {
    modified: Option<SystemTime>,
    length: u64,
    /// Device and inode: another file may have taken the place.
    identity: (u64, u64),
}

impl WatchedFile {
    /// A file that is about to be read.
    pub fn as_it_is(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: LastSeen::now(path) }
    }

    /// A file that was read without taking its state before.
    pub fn unseen(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: LastSeen::Never }
    }
}

impl LastSeen {
    pub fn now(path: &Path) -> Self {
        let state = |metadata: fs::Metadata| FileStamp {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            identity: identity(&metadata),
        };
        Self::As(fs::metadata(path).ok().map(state))
    }
}

/// An error of the system, without its number.
pub fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

fn without_blocking() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
}

fn regular(found: FileType) -> io::Result<()> {
    let what = match found {
        _ if found.is_file() => return Ok(()),
        _ if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        _ if found.is_fifo() => "a FIFO",
        _ if found.is_socket() => "a socket",
        _ if found.is_block_device() || found.is_char_device() => "a device",
        _ => "something else",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, and not a regular file")))
}

/// A file to which lines are appended: a regular file, a FIFO with a reader, or a character device such as a terminal.
#[derive(Debug)]
pub struct AppendFile {
    file: File,
    /// Device and inode: another file may have taken the name.
    identity: (u64, u64),
    /// There was none before.
    is_new: bool,
}

impl AppendFile {
    /// Checks that the file could be opened, without opening it: a FIFO's reader would see its end.
    pub fn check(path: &Path) -> io::Result<()> {
        check_appendable(path)?;
        check_writable(path)
    }

    /// Opens the file, and creates it with this mode, less the umask, if there is none.
    pub fn open(path: &Path, mode: u32) -> io::Result<Self> {
        Self::check(path)?;
        let is_new = !path.exists();
        let opened =
            OpenOptions::new().append(true).create(true).mode(mode).custom_flags(without_blocking()).open(path);
        let file = opened.map_err(|error| if error.raw_os_error() == Some(NO_READER) { no_reader() } else { error })?;
        let identity = identity(&file.metadata()?);
        Ok(Self { file, identity, is_new })
    }

    /// Removes the file where opening it has made it and nothing was written.
    fn withdraw(&self, path: &Path) {
        let is_empty = self.file.metadata().is_ok_and(|found| found.len() == 0);
        if self.is_new && is_empty && self.is_at(path) {
            drop(fs::remove_file(path));
        }
    }

    /// Whether the path still leads to this file.
    pub fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Writes all bytes. Waits for the reader of a full FIFO, at most `at_most` each time.
    pub fn write(&mut self, bytes: &[u8], at_most: Duration) -> io::Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            match self.file.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(at_most)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait(&self, at_most: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&timeout)) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::TimedOut, "its reader has stopped reading")),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The mode of a new file of lines: the group of the service may read it, like logs.
pub const LINES_MODE: u32 = 0o640;

/// How long the reader of a FIFO may pause. Writers of lines have queues with room for that time.
const READER_PAUSE: Duration = Duration::from_secs(1);

/// A file of whole lines. Where it was moved away or removed, a new one is begun at its path.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    file: AppendFile,
    /// The last write failed, perhaps within a line.
    is_torn: bool,
}

impl LineFile {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = AppendFile::open(path, LINES_MODE)?;
        Ok(Self { path: path.to_owned(), file, is_torn: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It is not used after all: what opening it has left behind is removed.
    pub fn withdraw(&self) {
        self.file.withdraw(&self.path);
    }

    /// Opens the path again, whatever it leads to now.
    pub fn reopen(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path)?;
        Ok(())
    }

    /// Appends whole lines, to a new file where the path leads to another one by now, or to none.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if !self.file.is_at(&self.path) {
            self.reopen()?;
        }
        let written = self.end_torn_line().and_then(|()| self.file.write(lines, READER_PAUSE));
        self.is_torn = written.is_err();
        written
    }

    fn end_torn_line(&mut self) -> io::Result<()> {
        if self.is_torn { self.file.write(b"\n", READER_PAUSE) } else { Ok(()) }
    }
}

/// The error of the system for a FIFO without a reader.
const NO_READER: i32 = Errno::NXIO.raw_os_error();

fn no_reader() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "it is a FIFO without a reader")
}

fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn fifo(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn only_regular_files_are_opened_to_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, pipe) = (folder.path().join("file"), folder.path().join("link"), folder.path().join("fifo"));
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        fifo(&pipe);
        assert_eq!(read(&link, 4).unwrap().as_deref(), Some(&b"text"[..]));
        assert_eq!(read(&link, 3).unwrap(), None);
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        for (path, what) in [
            (&*pipe, "it is a FIFO, and not a regular file"),
            (&folder.path().join("socket"), "it is a socket, and not a regular file"),
            (Path::new("/dev/zero"), "it is a device, and not a regular file"),
        ] {
            assert_eq!(open(path).unwrap_err().to_string(), what);
        }
        assert_eq!(open(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn what_cannot_be_written_is_found_without_writing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("later"), at("link")).unwrap();
        for writable in ["file", "absent", "link"] {
            check_writable(&at(writable)).unwrap();
        }
        for (unwritable, kind) in
            [("nowhere/file", io::ErrorKind::NotFound), ("file/below", io::ErrorKind::NotADirectory)]
        {
            assert_eq!(check_writable(&at(unwritable)).unwrap_err().kind(), kind, "{unwritable}");
            assert_eq!(AppendFile::open(&at(unwritable), 0o640).unwrap_err().kind(), kind, "{unwritable}");
        }
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["file", "link"], "nothing was created");
    }

    #[test]
    fn a_fifo_is_written_to_while_it_has_a_reader_and_never_waited_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("fifo");
        fifo(&pipe);
        assert_eq!(AppendFile::open(&pipe, 0o640).unwrap_err().to_string(), "it is a FIFO without a reader");
        let mut reader = OpenOptions::new().read(true).custom_flags(without_blocking()).open(&pipe).unwrap();
        let mut writer = AppendFile::open(&pipe, 0o640).unwrap();
        writer.write(b"line\n", Duration::ZERO).unwrap();
        let mut line = [0; 5];
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"line\n");
        let stuck = writer.write(&vec![b'x'; 1 << 20], Duration::from_millis(1)).unwrap_err();
        assert_eq!(stuck.kind(), io::ErrorKind::TimedOut);
        drop(reader);
        // A process that another test begins may have the reader for a moment.
        assert_eq!(writer.write(b"line\n", Duration::from_secs(10)).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
