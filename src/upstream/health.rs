//! Asking servers whether they are well.

use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use h2::client;
use http::Request;
use http::StatusCode;
use http::header::CONNECTION;
use http::header::HOST;
use http::header::USER_AGENT;
use http_body_util::Empty;
use tokio::time::MissedTickBehavior;
use tokio::time::interval;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
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
use super::http1::Link;

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

/// One GET on a connection of its own, for the fixed host where there is one; any answer below 400 is good.
async fn ask(server: &Arc<Server>, check: &HealthCheck, host: &HostHeader) -> Result<(), String> {
    let timeouts = Timeouts { connect: check.timeout, ..Timeouts::default() };
    let protocol = if server.speaks_http2 { Protocol::Http2 } else { Protocol::Http1 };
    let host = match host {
        HostHeader::Preserve => server.name(),
        HostHeader::Fixed(host) => host.to_str().map_err(|error| error.to_string())?,
    };
    let stream = connect(server, &timeouts, protocol).await.map_err(|cause| cause.to_string())?;
    server.note_connected();
    let answered = match protocol {
        Protocol::Http1 => {
            let request = Request::get(check.path.as_str()).header(HOST, host).header(CONNECTION, "close");
            let request = request.header(USER_AGENT, "portcullis").body(Empty::<Bytes>::new());
            let mut request = request.map_err(|error| error.to_string())?;
            // The body of the answer is not read: the connection goes with the check.
            let link = Box::new(Link::new(stream, Arc::clone(server), Duration::ZERO, Weak::new()));
            let answered =
                link.exchange(&mut request, &mut None, check.timeout, HeadBounds::default(), &mut |_| ()).await;
            answered.map(|response| response.status()).map_err(|failed| failed.to_string())
        }
        Protocol::Http2 => {
            let scheme = if server.secure.is_some() { "https" } else { "http" };
            let request = Request::get(format!("{scheme}://{host}{}", check.path));
            let request = request.header(USER_AGENT, "portcullis").body(()).map_err(|error| error.to_string())?;
            let (sender, connection) = client::handshake(stream).await.map_err(|error| error.to_string())?;
            let _driven = AbortOnDropHandle::new(tokio::spawn(connection));
            let mut sender = sender.ready().await.map_err(|error| error.to_string())?;
            let (answer, _) = sender.send_request(request, true).map_err(|error| error.to_string())?;
            answer.await.map(|response| response.status()).map_err(|error| error.to_string())
        }
    };
    let status = answered?;
    if status < StatusCode::BAD_REQUEST { Ok(()) } else { Err(format!("answered {status}")) }
}

/// More often than this would be load, not a check.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);
