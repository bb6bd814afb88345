//! TLS towards servers, and the certificates of authorities, which listeners need as well.

pub mod ca_certificates;
pub mod client;

pub use self::ca_certificates::CaCertificates;
pub use self::ca_certificates::InvalidCaCertificates;
