//! Why the gateway did not start.

use std::io;

use crate::config::Diagnostic;
use crate::listen::ListenAddress;
use crate::listen::tls::TlsSetupError;
use crate::units::counted;

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {}", describe(.address, .source))]
    Bind { address: ListenAddress, source: io::Error },
    #[error("cannot change who may connect to {address}: {source}")]
    Mode { address: ListenAddress, source: io::Error },
    #[error("cannot speak TLS on {address}: {source}")]
    Tls { address: ListenAddress, source: TlsSetupError },
    /// Something that the configuration names cannot be used.
    #[error("{} in the configuration", counted(.0.len(), "mistake"))]
    Mistakes(Vec<Diagnostic>),
    #[error("cannot take over from the running gateway: {0}")]
    Takeover(io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// The errors that an operator can do something about in plain words, any other as the system words it.
fn describe(address: &ListenAddress, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is already in use".to_owned(),
        io::ErrorKind::NotFound if address.ip().is_none() => "its folder does not exist".to_owned(),
        io::ErrorKind::PermissionDenied if address.ip().is_none() => {
            "permission denied; the gateway makes a file there, so its user must be allowed to write to the folder"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has that address".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied; ports below 1024 need a privilege".to_owned(),
        _ => error.to_string(),
    }
}
