//! Looks up the names of servers at intervals, and adds and removes servers as the addresses change.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::net::lookup_host;
use tokio::select;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tower::service_fn;
use tracing::{info, warn};

use super::server::Server;
use super::servers::Upstream;
use crate::upstream::connect::{connect, descriptor_shortages};
use crate::upstream::error::FailureCause;
use crate::upstream::response::ServerProtocol;
use crate::upstream::server::{ServerAddress, ServerId};
use crate::upstream::servers::{HeadBounds, HealthCheck, HostHeader, ServerUrl, Timeouts, UpstreamSettings};
use crate::wire::http_client;
use crate::wire::http_client::{Client, root_cause};
use crate::words::timer::{PeerTimedOut, peer_timeout};

/// How soon a changed address is noticed.
const INTERVAL: Duration = Duration::from_secs(3);

/// A look-up that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Looks up every name among the servers at intervals. Returns at once if there is none.
///
/// Every address is a server. When an address disappears its server gets no further requests, and ends those it has.
/// While a name cannot be looked up its servers stay.
pub(super) async fn resolve_forever(upstream: &Upstream) {
    let is_name = |url: &&ServerUrl| matches!(ServerAddress::of(url), ServerAddress::Name { .. });
    let mut is_failing = false;
    while upstream.settings.servers.iter().any(|url| is_name(&url)) {
        let mut failure = None;
        for url in upstream.settings.servers.iter().filter(is_name) {
            match look_up(url).await {
                Ok(addresses) => upstream.set_addresses(url, &addresses),
                Err(error) => failure = Some((url, error)),
            }
        }
        match &failure {
            Some((url, error)) if !is_failing => {
                let (upstream, server) = (&upstream.settings.name, url.name());
                warn!(%upstream, %server, %error, "cannot look up the name of a server, keeping its last addresses");
            }
            None if is_failing => {
                info!(upstream = %upstream.settings.name, "the names of all servers can be looked up again");
            }
            Some(_) | None => {}
        }
        is_failing = failure.is_some();
        sleep(INTERVAL).await;
    }
}

async fn look_up(url: &ServerUrl) -> io::Result<Vec<SocketAddr>> {
    let ServerAddress::Name { host, port } = ServerAddress::of(url) else { return Ok(Vec::new()) };
    let found = peer_timeout(TIMEOUT, pin!(lookup_host((host.as_str(), port)))).await;
    let mut addresses: Vec<SocketAddr> = found.map_err(|_| io::ErrorKind::TimedOut)??.collect();
    // Sorted: name servers rotate the list with every look-up.
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(addresses)
}

impl Upstream {
    /// Makes these addresses the servers of a name. Servers whose address stays are kept.
    fn set_addresses(&self, url: &ServerUrl, addresses: &[SocketAddr]) {
        let before = self.servers();
        let mut of_name = before.iter().filter(|server| server.url == *url);
        if of_name.clone().count() == addresses.len()
            && of_name.all(|server| server.resolved().is_some_and(|address| addresses.contains(&address)))
        {
            return;
        }
        let mut servers: Vec<Arc<Server>> = Vec::with_capacity(before.len() + addresses.len());
        for known in &self.settings.servers {
            let of_name = before.iter().filter(|server| server.url == *known);
            if known != url {
                servers.extend(of_name.cloned());
                continue;
            }
            servers.extend(addresses.iter().map(|address| {
                let kept = of_name.clone().find(|server| server.resolved() == Some(*address));
                kept.map_or_else(|| self.new_server(url, ServerAddress::Address(*address)), Arc::clone)
            }));
        }
        let (upstream, server) = (&self.settings.name, url.name());
        info!(%upstream, %server, ?addresses, "a server's name has these addresses now");
        self.replace_servers(servers);
    }
}

// The background tasks of an upstream: looking up the names of its servers, and health checks.

/// Runs the tasks of an upstream until `stop` is cancelled.
pub async fn run_background_tasks(upstream: Arc<Upstream>, stop: CancellationToken) {
    let mut checks = HealthCheckTasks::default();
    let resolving = resolve_forever(&upstream);
    let checking = async {
        loop {
            let changed = upstream.changed.notified();
            checks.follow(&upstream);
            changed.await;
        }
    };
    select! {
        () = stop.cancelled() => {}
        () = async { tokio::join!(resolving, checking); } => {}
    }
}

/// One task for each server that is checked.
#[derive(Debug, Default)]
struct HealthCheckTasks(HashMap<ServerId, JoinHandle<()>>);

impl HealthCheckTasks {
    /// Starts tasks for new servers, and ends the tasks of servers that are gone.
    fn follow(&mut self, upstream: &Upstream) {
        let Some(check) = &upstream.settings.health else { return };
        let servers = upstream.servers();
        self.0.retain(|id, task| {
            let stays = servers.iter().any(|server| server.id == *id);
            if !stays {
                task.abort();
            }
            stays
        });
        for server in servers.iter() {
            self.0.entry(server.id).or_insert_with(|| {
                let (server, check, settings) = (Arc::clone(server), check.clone(), upstream.settings.clone());
                tokio::spawn(async move { check_forever(&settings, &server, &check).await })
            });
        }
    }
}

impl Drop for HealthCheckTasks {
    fn drop(&mut self) {
        self.0.values().for_each(JoinHandle::abort);
    }
}

// Health checks: asks each server at intervals whether it is healthy.

/// More often than this would be load, not a check.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Checks a server until the future is dropped.
pub(super) async fn check_forever(settings: &UpstreamSettings, server: &Arc<Server>, check: &HealthCheck) {
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
        if fault.is_none() {
            server.note_success();
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
    let protocol = if server.speaks_http2 { ServerProtocol::Http2 } else { ServerProtocol::Http1 };
    let server = Arc::clone(server);
    // The connection is made as for requests; the URL is ignored.
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

#[cfg(test)]
mod tests {
    use http::uri::Authority;

    use super::*;
    use crate::upstream::{Balance, HeadBounds, HostHeader, ServerVerification, Timeouts, UpstreamSettings};

    fn location(authority: &str) -> ServerUrl {
        authority.parse::<Authority>().unwrap().into()
    }

    fn check(upstream: &Upstream, expected: &[&str]) {
        let servers = upstream.servers();
        let found: Vec<String> = servers
            .iter()
            .map(|server| server.resolved().map_or_else(|| "?".to_owned(), |address| address.to_string()))
            .collect();
        assert_eq!(found, expected);
        assert!(servers.iter().all(|server| **server.name() == *server.url.name()));
    }

    #[test]
    fn new_addresses_are_servers_and_those_that_stay_are_the_same_ones() {
        let upstream = Upstream::new(UpstreamSettings {
            name: "app".into(),
            servers: vec![location("10.0.0.9:80"), location("app.internal:80")],
            balance: Balance::RoundRobin,
            host: HostHeader::Preserve,
            timeouts: Timeouts::default(),
            heads: HeadBounds::default(),
            health: None,
            tls: ServerVerification::default(),
            http2: false,
            max_idle: None,
        });
        let addresses = |all: &[&str]| -> Vec<SocketAddr> { all.iter().map(|one| one.parse().unwrap()).collect() };
        check(&upstream, &["10.0.0.9:80", "?"]);
        upstream.set_addresses(&location("app.internal:80"), &addresses(&["10.0.0.1:80", "10.0.0.2:80"]));
        check(&upstream, &["10.0.0.9:80", "10.0.0.1:80", "10.0.0.2:80"]);
        let before = upstream.servers();
        upstream.set_addresses(&location("app.internal:80"), &addresses(&["10.0.0.2:80", "10.0.0.3:80"]));
        check(&upstream, &["10.0.0.9:80", "10.0.0.2:80", "10.0.0.3:80"]);
        assert!(Arc::ptr_eq(&before[2], &upstream.servers()[1]));
        let before = upstream.servers();
        upstream.set_addresses(&location("app.internal:80"), &addresses(&["10.0.0.2:80", "10.0.0.3:80"]));
        assert!(Arc::ptr_eq(&before, &upstream.servers()));
    }
}
