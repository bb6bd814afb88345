//! What the log says when the gateway begins to serve.

use std::path::Path;

use tracing::info;

use super::App;
use super::Origin;
use super::store;
use crate::config::Settings;
use crate::upstream::ServerUrl;

/// What is served, counted before the settings are used up.
pub(super) struct Summary {
    store: String,
    routes: usize,
    limits: usize,
    upstreams: Vec<String>,
}

impl Summary {
    pub(super) fn of(settings: &Settings) -> Self {
        let upstreams = settings.upstreams.iter().map(|upstream| {
            let servers: Vec<&str> = upstream.servers.iter().map(ServerUrl::name).collect();
            match &servers[..] {
                [only] if upstream.name.ends_with(only) => upstream.name.to_string(),
                several => format!("{} ({})", upstream.name, several.join(", ")),
            }
        });
        Self {
            store: store::describe(&settings.store),
            routes: settings.policy.routes.all().len(),
            limits: settings.policy.limits.len(),
            upstreams: upstreams.collect(),
        }
    }
}

/// Logs what is served, a line for each store, upstream and address.
pub(super) fn announce(app: &App, origin: &Origin, summary: &Summary) {
    let configuration = match origin {
        Origin::File(file) => file.as_path(),
        Origin::Flags => Path::new("the command line"),
        Origin::StandardInput => Path::new("standard input"),
    };
    info!(
        version = env!("CARGO_PKG_VERSION"),
        configuration = %configuration.display(),
        routes = summary.routes,
        limits = summary.limits,
        workers = app.workers.count(),
        "portcullis {} serves {}",
        env!("CARGO_PKG_VERSION"),
        configuration.display(),
    );
    info!("{}", summary.store);
    for upstream in &summary.upstreams {
        info!(upstream, "forwarding to {upstream}");
    }
    for address in app.addresses() {
        info!(%address, "listening on {address}");
    }
    if let Some(address) = app.admin_address() {
        info!(%address, "health and metrics on {address}");
    } else {
        info!("no admin address: no health, no metrics");
    }
}
