//! The configuration: from text to settings in which no error is left.

use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;

use crate::admin;
use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::gateway;
use crate::listen;
use crate::record::LogSettings;
use crate::store;
use crate::upstream;

/// A configuration, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: Vec<SocketAddr>,
    pub admin: Option<admin::Settings>,
    pub clients: TrustedProxies,
    pub store: store::memory::Settings,
    /// By `UpstreamId`.
    pub upstreams: Vec<upstream::Settings>,
    pub policy: Policy,
    pub log: LogSettings,
    pub connections: listen::Settings,
    pub requests: gateway::Settings,
    /// Every file that was read, the configuration first: a change of any means reading anew.
    pub files: Vec<PathBuf>,
}

/// One mistake: where it is, what it is, what to write instead.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Diagnostic {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
}

/// Reads a configuration file and every file it names. All mistakes at once.
pub fn load(_file: &Path) -> Result<Settings, Vec<Diagnostic>> {
    todo!()
}
