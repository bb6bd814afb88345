//! TLS of a listener: its certificates, and the certificates of clients that it accepts.

pub mod certificate;

mod certificate_resolver;
mod handshake;
mod name_expiries;
mod server_config;
mod tls_info;
mod x509;

pub use self::certificate::Certificate;
pub use self::certificate::InvalidCertificate;
pub use self::name_expiries::NameExpiries;
pub use self::server_config::Settings;
pub use self::server_config::Tls;
pub use self::server_config::TlsSetupError;
pub use self::tls_info::TlsInfo;

pub(super) use self::handshake::TlsHandshake;
pub(super) use self::handshake::shake_hands;
