//! Health checks: asks each server at intervals whether it is healthy.

use std::pin::pin;
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
use tower::service_fn;
use tracing::info;
use tracing::warn;

use super::connect::connect;
use super::connect::descriptor_shortages;
use super::error::FailureCause;
use super::protocol::Protocol;
use super::server::Server;
use super::settings::HeadBounds;
use super::settings::HealthCheck;
use super::settings::HostHeader;
use super::settings::Settings;
use super::settings::Timeouts;
use crate::http_client;
use crate::http_client::Client;
use crate::http_client::root_cause;
use crate::timer::PeerTimedOut;
use crate::timer::peer_timeout;

/// Checks a server until the future is dropped.
pub(super) async fn check_forever(settings: &Settings, server: &Arc<Server>, check: &HealthCheck) {
    let upstream = &*settings.name;
    let mut ticks = interval(check.every.max(MIN_INTERVAL));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Answers in a row that contradict its present state.
    let mut contradictions = 0;
    loop {
        ticks.tick().await;
        let shortages = descriptor_shortages();
        let answered = peer_timeout(check.timeout, pin!(ask(server, check, &settings.host))).await;
        let fault = match answered {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(fault),
            Err(PeerTimedOut) => Some(format!("no answer within {} ms", check.timeout.as_millis())),
        };
        if fault.is_some() && shortages != descriptor_shortages() {
            // The gateway lacked a descriptor: the server may not have been asked.
            continue;
        }
        if fault.is_none() == server.is_healthy() {
            contradictions = 0;
            continue;
        }
        contradictions += 1;
        match fault {
            Some(fault) if contradictions >= check.unhealthy => {
                contradictions = 0;
                server.set_healthy(false);
                warn!(upstream, server = %server.name(), fault, "a server is unhealthy, sending it no requests");
            }
            None if contradictions >= check.healthy => {
                contradictions = 0;
                server.set_healthy(true);
                info!(upstream, server = %server.name(), "a server is healthy again, sending it requests");
            }
            _ => {}
        }
    }
}

/// Sends one GET on a connection of its own. Any answer below 400 is good, and its body is not read.
async fn ask(server: &Arc<Server>, check: &HealthCheck, host: &HostHeader) -> Result<(), String> {
    let host = match (&check.host, host) {
        (Some(host), _) | (None, HostHeader::Fixed(host)) => host.to_str().map_err(|error| error.to_string())?,
        (None, HostHeader::Preserve) => server.host(),
    };
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    // HTTP/2 has the host in its target, HTTP/1.1 in a field.
    let request = if server.speaks_http2 {
        Request::get(format!("{scheme}://{host}{}", check.path))
    } else {
        let request = Request::get(format!("{scheme}://{}{}", server.host(), check.path));
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
const MIN_INTERVAL: Duration = Duration::from_millis(10);
