//! What the TLS handshake of a client says.

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsInfo {
    /// The host that the client asked for (SNI).
    pub server_name: Option<Box<str>>,
    /// The client has presented a certificate, as this listener requires.
    pub client_is_certified: bool,
}
