//! A socket that accepts connections.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;

/// A socket that accepts connections, not yet served.
#[derive(Debug)]
pub enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl ListeningSocket {
    /// The same socket once more.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(socket) => socket.try_clone().map(Self::Tcp),
            Self::Unix(socket) => socket.try_clone().map(Self::Unix),
        }
    }
}

impl AsFd for ListeningSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}
