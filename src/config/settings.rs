//! A configuration without errors, as the rest of the crate uses it.

use std::path::Path;
use std::path::PathBuf;

use super::diagnostic::Diagnostic;
use super::shown::ShownConfig;
use crate::admin::AdminSettings;
use crate::client::TrustedProxies;
use crate::crowdsec::ListSource;
use crate::decision::Policy;
use crate::files::WatchedFile;
use crate::gateway;
use crate::listen;
use crate::record::LogSettings;
use crate::record::RouteSeries;
use crate::record::audit::AuditSettings;
use crate::record::notify::NotifySettings;
use crate::record::spans::TracingSettings;
use crate::store;
use crate::upstream;

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: Vec<listen::ListenerConfig>,
    pub admin: Option<AdminSettings>,
    pub clients: TrustedProxies,
    pub store: store::Settings,
    /// By `UpstreamId`.
    pub upstreams: Vec<upstream::Settings>,
    pub policy: Policy,
    pub notify: NotifySettings,
    /// The lists that follow a source, by their number.
    pub followed: Vec<ListSource>,
    pub audit: AuditSettings,
    pub log: LogSettings,
    pub route_series: RouteSeries,
    pub connections: listen::Settings,
    pub requests: gateway::GatewaySettings,
    /// `None`: no request is traced.
    pub tracing: Option<TracingSettings>,
    /// `None`: no token is verified.
    pub tokens: Option<gateway::TokenSettings>,
    /// Every file that was read, the configuration first. A change of any of them causes a reload.
    pub files: Vec<WatchedFile>,
    /// Every file that is to be written, with the place that names it.
    pub outputs: Vec<OutputFile>,
    pub warnings: Vec<Diagnostic>,
    /// What was read, for operators.
    pub shown: ShownConfig,
}

/// A file that is to be written. Whether that is possible shows when it is opened.
#[derive(Clone, Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// The place that names it.
    place: Diagnostic,
}

impl OutputFile {
    pub(super) fn new(path: &Path, place: Diagnostic) -> Self {
        Self { path: path.to_owned(), place }
    }

    /// The mistake of one of `outputs` that could not be opened.
    pub fn unwritable(outputs: &[Self], path: &Path, message: &str) -> Diagnostic {
        let named = outputs.iter().find(|output| output.path == path).map(|output| output.place.clone());
        let mistake = named.unwrap_or_else(|| Diagnostic::new(path, 1, 1, ""));
        let help = "check the path, who may write there, and that a FIFO has its reader";
        Diagnostic { message: message.to_owned(), ..mistake }.help(help)
    }
}
