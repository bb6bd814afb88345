use std::sync::atomic::AtomicU16;

use http::HeaderValue;
use tokio_util::sync::CancellationToken;

use super::*;

/// An origin whose every answer has the status in the cell; zero is silence.
async fn origin(status: &Arc<AtomicU16>) -> Origin {
    named("127.0.0.1:", status).await
}

/// One that is asked under this name.
async fn named(host: &'static str, status: &Arc<AtomicU16>) -> Origin {
    let status = Arc::clone(status);
    Origin::start(move |_, mut peer| {
        let status = Arc::clone(&status);
        async move {
            let request = peer.request().await.unwrap_or_default();
            assert!(request.starts_with(&format!("GET /healthz HTTP/1.1\r\nhost: {host}")), "{request}");
            match status.load(Ordering::SeqCst) {
                0 => peer.closed().await,
                status => assert!(peer.send(&format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")).await),
            }
        }
    })
    .await
}

fn watched(origins: &[&Origin]) -> (Arc<Upstream>, CancellationToken) {
    watched_as(HostHeader::Preserve, origins)
}

fn watched_as(host: HostHeader, origins: &[&Origin]) -> (Arc<Upstream>, CancellationToken) {
    let upstream = Upstream::new(Settings {
        host,
        health: Some(HealthCheck {
            path: "/healthz".to_owned(),
            every: Duration::from_millis(10),
            timeout: SHORT,
            healthy: 2,
            unhealthy: 3,
        }),
        ..settings(origins)
    });
    let stop = CancellationToken::new();
    tokio::spawn(background_tasks::run_background_tasks(Arc::clone(&upstream), stop.clone()));
    (upstream, stop)
}

#[tokio::test]
async fn a_server_is_unhealthy_after_bad_answers_in_a_row_and_healthy_after_good_ones() {
    let status = Arc::new(AtomicU16::new(200));
    let origin = origin(&status).await;
    let (upstream, stop) = watched(&[&origin]);
    let server = &upstream.servers()[0];
    eventually(|| origin.accepted() > 3).await;
    assert!(server.is_healthy());

    let before = origin.accepted();
    status.store(500, Ordering::SeqCst);
    eventually(|| !server.is_healthy()).await;
    // One that was accepted before may have been answered after.
    assert!(origin.accepted() >= before + 2);

    let before = origin.accepted();
    status.store(302, Ordering::SeqCst);
    eventually(|| server.is_healthy()).await;
    assert!(origin.accepted() > before);
    stop.cancel();
}

#[tokio::test]
async fn a_server_that_is_silent_or_gone_is_unhealthy_and_the_other_is_not() {
    let silent = origin(&Arc::new(AtomicU16::new(0))).await;
    let well = origin(&Arc::new(AtomicU16::new(204))).await;
    let gone = Origin::down().await;
    let (upstream, _stop) = watched(&[&silent, &well, &gone]);

    eventually(|| !upstream.servers()[0].is_healthy() && !upstream.servers()[2].is_healthy()).await;

    assert!(upstream.servers()[1].is_healthy());
}

#[tokio::test]
async fn an_application_of_one_host_is_asked_under_its_name() {
    let origin = named("app.internal\r\n", &Arc::new(AtomicU16::new(204))).await;
    let (upstream, _stop) = watched_as(HostHeader::Fixed(HeaderValue::from_static("app.internal")), &[&origin]);
    upstream.servers()[0].set_healthy(false);
    eventually(|| upstream.servers()[0].is_healthy()).await;
}

#[tokio::test]
async fn watching_ends_when_stopped() {
    let origin = origin(&Arc::new(AtomicU16::new(200))).await;
    let upstream = watched(&[&origin]).0;
    let stop = CancellationToken::new();
    stop.cancel();
    background_tasks::run_background_tasks(upstream, stop).await;
}
