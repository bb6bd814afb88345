//! Asking servers whether they are well.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::StatusCode;
use http::Uri;
use http::header::CONNECTION;
use http::header::HOST;
use http::header::USER_AGENT;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::time::MissedTickBehavior;
use tokio::time::interval;
use tokio::time::timeout;
use tower::service_fn;
use tracing::info;
use tracing::warn;

use super::HeadBounds;
use super::HealthCheck;
use super::HostHeader;
use super::Server;
use super::Settings;
use super::Timeouts;
use super::connect::Protocol;
use super::connect::connect;
use super::connect::descriptor_shortages;
use super::error::FailureCause;
use crate::http_client;
use crate::http_client::Client;
use crate::http_client::root_cause;

/// Asks a server again and again, forever.
pub(super) async fn watch(settings: &Settings, server: &Arc<Server>, check: &HealthCheck) {
    let upstream = &*settings.name;
    let mut times = interval(check.every.max(LEAST_INTERVAL));
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Answers in a row that speak against what is thought of it.
    let mut against = 0;
    loop {
        times.tick().await;
        let missed = descriptor_shortages();
        let asked = timeout(check.timeout, ask(server, check, &settings.host)).await;
        let fault = match asked {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault),
            Err(_) => Some("no answer in time".to_owned()),
        };
        if fault.is_some() && missed != descriptor_shortages() {
            // It may never have been asked: the fault is ours.
            continue;
        }
        if fault.is_none() == server.is_healthy() {
            against = 0;
            continue;
        }
        against += 1;
        match fault {
            Some(fault) if against >= check.unhealthy => {
                against = 0;
                server.set_healthy(false);
                warn!(upstream, server = %server.name(), fault, "a server is unhealthy, it gets no requests");
            }
            None if against >= check.healthy => {
                against = 0;
                server.set_healthy(true);
                info!(upstream, server = %server.name(), "a server is healthy again");
            }
            _ => {}
        }
    }
}

/// Sends one GET on a connection of its own. Any answer below 400 is good, and its body is not read.
async fn ask(server: &Arc<Server>, check: &HealthCheck, host: &HostHeader) -> Result<(), String> {
    let host = match host {
        HostHeader::Preserve => server.name(),
        HostHeader::Fixed(host) => host.to_str().map_err(|error| error.to_string())?,
    };
    let scheme = if server.secure.is_some() { "https" } else { "http" };
    // HTTP/2 has the host in its target, HTTP/1.1 in a field.
    let request = if server.speaks_http2 {
        Request::get(format!("{scheme}://{host}{}", check.path))
    } else {
        let request = Request::get(format!("{scheme}://{}{}", server.name(), check.path));
        request.header(HOST, host).header(CONNECTION, "close")
    };
    let request = request.header(USER_AGENT, "portcullis").body(Full::default()).map_err(|error| error.to_string())?;
    let bounds = HeadBounds::default();
    let mut builder = http_client::builder();
    builder.http1_max_buf_size(bounds.bytes).http1_max_headers(bounds.fields);
    builder.http2_only(server.speaks_http2).http2_max_header_list_size(bounds.http2_list_size());
    let timeouts = Timeouts { connect: check.timeout, ..Timeouts::default() };
    let protocol = if server.speaks_http2 { Protocol::Http2 } else { Protocol::Http1 };
    let server = Arc::clone(server);
    // The connection is made as for requests, whatever the URL says.
    let connector = service_fn(move |_: Uri| {
        let server = Arc::clone(&server);
        Box::pin(async move {
            let stream = connect(&server, &timeouts, protocol).await?;
            server.note_connected();
            Ok::<_, FailureCause>(TokioIo::new(stream))
        })
    });
    let client: Client<_> = builder.build(connector);
    match client.request(request).await {
        Ok(response) if response.status() < StatusCode::BAD_REQUEST => Ok(()),
        Ok(response) => Err(format!("answered {}", response.status())),
        Err(error) => Err(root_cause(&error).to_string()),
    }
}

/// More often than this would be load, not a check.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);
