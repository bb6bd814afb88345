//! How the gateway verifies servers: applications, webhooks and Redis.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::RootCertStore;

/// The system has no root certificates that can be used.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system has no root certificates, {unreadable} cannot be read")]
pub struct NoSystemRoots {
    unreadable: usize,
}

/// Reads the system's root certificates, which takes a while: callers keep them.
pub fn system_roots() -> Result<RootCertStore, NoSystemRoots> {
    let mut roots = RootCertStore::empty();
    let (_, unreadable) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(NoSystemRoots { unreadable }) } else { Ok(roots) }
}

/// Accepts servers whose certificates lead to one of `roots`.
pub fn client_config(roots: impl Into<Arc<RootCertStore>>) -> ClientConfig {
    // Named here and not looked up in the process, where another provider could be in force.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has what TLS 1.2 and 1.3 need")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
