use std::sync::atomic::AtomicU16;

use http::HeaderValue;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::upstream::error::FailureCause;
use crate::upstream::resolve::run_background_tasks;

/// An application that answers every health check with one status.
struct Application {
    origin: Origin,
    /// Zero is silence.
    status: Arc<AtomicU16>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Application {
    async fn start(status: u16) -> Self {
        let status = Arc::new(AtomicU16::new(status));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let shared = (Arc::clone(&status), Arc::clone(&requests));
        let origin = Origin::start(move |_, mut peer| {
            let (status, requests) = shared.clone();
            async move {
                let request = peer.request().await.unwrap_or_default();
                requests.lock().push(request);
                match status.load(Ordering::SeqCst) {
                    0 => peer.closed().await,
                    // The gateway may have stopped meanwhile.
                    status => drop(peer.send(&format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")).await),
                }
            }
        })
        .await;
        Self { origin, status, requests }
    }

    fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    fn checks(&self) -> usize {
        self.requests.lock().len()
    }

    /// Every request so far was a health check for this host.
    #[track_caller]
    fn was_checked_as(&self, host: &str) {
        let requests = self.requests.lock();
        let expected = format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\n");
        assert!(!requests.is_empty());
        assert!(requests.iter().all(|request| request.starts_with(&expected)), "{expected:?} {requests:?}");
    }
}

fn checked(host: HostHeader, origins: &[&Origin]) -> Arc<Upstream> {
    Upstream::new(UpstreamSettings {
        host,
        health: Some(HealthCheck {
            path: "/healthz".to_owned(),
            host: None,
            every: Duration::from_millis(10),
            timeout: SHORT,
            healthy: 2,
            unhealthy: 3,
        }),
        ..settings(origins)
    })
}

/// Ends its tasks when it is dropped.
fn run(upstream: &Arc<Upstream>) -> (AbortOnDropHandle<()>, CancellationToken) {
    let stop = CancellationToken::new();
    let tasks = tokio::spawn(run_background_tasks(Arc::clone(upstream), stop.clone()));
    (AbortOnDropHandle::new(tasks), stop)
}

#[tokio::test]
async fn a_server_is_unhealthy_after_bad_answers_in_a_row_and_healthy_after_good_ones() {
    let application = Application::start(200).await;
    let upstream = checked(HostHeader::Preserve, &[&application.origin]);
    let _tasks = run(&upstream);
    let server = &upstream.servers()[0];
    eventually(|| application.checks() > 3).await;
    assert!(server.is_healthy());
    application.was_checked_as(application.origin.authority().as_str());

    let before = application.checks();
    application.answer(500);
    eventually(|| !server.is_healthy()).await;
    // A check that came before may have been answered after.
    assert!(application.checks() >= before + 2);

    let before = application.checks();
    application.answer(302);
    eventually(|| server.is_healthy()).await;
    assert!(application.checks() > before);
}

#[tokio::test]
async fn a_good_answer_to_a_check_ends_what_a_failed_request_began() {
    let application = Application::start(200).await;
    let upstream = checked(HostHeader::Preserve, &[&application.origin]);
    let server = &upstream.servers()[0];
    server.note_not_connected(&FailureCause::ConnectTimeout);
    assert!(!upstream.is_well(server.name()));
    let _tasks = run(&upstream);
    eventually(|| upstream.is_well(server.name())).await;
}

#[tokio::test]
async fn a_server_that_is_silent_or_gone_is_unhealthy_and_the_other_is_not() {
    let silent = Application::start(0).await;
    let well = Application::start(204).await;
    let gone = Origin::down().await;
    let upstream = checked(HostHeader::Preserve, &[&silent.origin, &well.origin, &gone]);
    let _tasks = run(&upstream);

    eventually(|| !upstream.servers()[0].is_healthy() && !upstream.servers()[2].is_healthy()).await;

    eventually(|| well.checks() > 3).await;
    assert!(upstream.servers()[1].is_healthy());
}

#[tokio::test]
async fn an_application_of_one_host_is_asked_under_its_name() {
    let application = Application::start(204).await;
    let host = HostHeader::Fixed(HeaderValue::from_static("app.internal"));
    let upstream = checked(host, &[&application.origin]);
    upstream.servers()[0].set_healthy(false);
    let _tasks = run(&upstream);
    eventually(|| application.checks() > 0).await;
    application.was_checked_as("app.internal");
    eventually(|| upstream.servers()[0].is_healthy()).await;
}

#[tokio::test]
async fn checking_ends_when_stopped() {
    let application = Application::start(200).await;
    let upstream = checked(HostHeader::Preserve, &[&application.origin]);
    let (tasks, stop) = run(&upstream);
    eventually(|| application.checks() > 0).await;

    stop.cancel();
    tokio::time::timeout(LONG, tasks).await.expect("it ends").unwrap();

    // A check that was under way may still arrive.
    tokio::time::sleep(SHORT).await;
    let before = application.origin.accepted();
    tokio::time::sleep(SHORT).await;
    assert_eq!(application.origin.accepted(), before);
}
