//! HTTP/2 to the applications: many requests over one connection, streams both ways, trailers, refusals.

use std::sync::atomic::Ordering;
use std::thread;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};

use crate::forwarding::cookie_lines;
use crate::http2::over_http2;
use crate::http2_origin::Http2Origin;
use crate::support::{CertificateAuthority, Gateway, Origin, SecureOrigin, eventually};

#[test]
fn a_request_of_http1_goes_over_http2_with_its_host_as_the_authority() {
    let origin = Http2Origin::start();
    let gateway = origin.gateway();
    let answer = gateway.post("/a?b=c").form("user=x").send();
    assert_eq!((answer.status, answer.text()), (200, "6 bytes".to_owned()));
    let head = origin.seen.last();
    assert_eq!(head.uri.to_string(), "http://app.example/a?b=c");
    assert_eq!(head.headers.get("x-forwarded-for").map(HeaderValue::as_bytes), Some(&b"127.0.0.1"[..]));
    for name in ["host", "connection", "transfer-encoding", "te"] {
        assert!(head.headers.get(name).is_none(), "{name}");
    }
    let large = "x".repeat(1_000_000);
    assert_eq!(gateway.post("/").body("text/plain", &large).send().text(), "1000000 bytes");
    assert_eq!(gateway.post("/echo").body("text/plain", &large).send().text(), large);
}

#[test]
fn an_answer_may_set_many_long_cookies_and_not_any_number() {
    let origin = Http2Origin::start();
    let gateway = origin.gateway();
    let answer = gateway.get("/cookies").send();
    assert_eq!(answer.headers.all("set-cookie"), cookie_lines());
    assert_eq!(gateway.get("/too-long").status(), 502);
    assert_eq!(gateway.get("/").send().text(), "0 bytes");
}

#[test]
fn requests_share_one_connection_of_each_core() {
    let origin = Http2Origin::with(100, 12);
    let gateway = origin.gateway();
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| assert_eq!(gateway.get("/together").status(), 200));
        }
    });
    let cores = thread::available_parallelism().expect("cores").get();
    assert!(origin.connections() <= cores, "{} connections", origin.connections());
}

#[test]
fn more_connections_are_opened_when_the_server_takes_no_more_on_one() {
    let origin = Http2Origin::with(2, 12);
    let gateway = origin.gateway();
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| assert_eq!(gateway.get("/together").status(), 200));
        }
    });
    assert!(origin.connections() >= 6, "{} connections", origin.connections());
}

#[test]
fn a_request_that_the_server_refused_unprocessed_is_sent_again() {
    let origin = Http2Origin::start();
    let gateway = origin.gateway();
    assert_eq!(gateway.post("/").status(), 200, "the connection stands");
    for method in ["GET", "POST"] {
        let path = format!("/refuse/{method}");
        assert_eq!(gateway.request(method, &path).status(), 200, "{path}");
        assert_eq!(origin.seen.count(&path), 2, "{path}");
    }
}

#[test]
fn a_request_that_a_goaway_leaves_out_is_sent_again_on_another_connection() {
    for body in ["", "user=alice"] {
        let origin = Http2Origin::start();
        origin.seen.unwelcome.store(1, Ordering::SeqCst);
        let gateway = origin.gateway();
        let answer = gateway.post("/goaway").form(body).send();
        assert_eq!((answer.status, answer.text()), (200, format!("{} bytes", body.len())));
        assert_eq!((origin.seen.count("/goaway"), origin.connections()), (1, 2));
    }
}

#[test]
fn one_with_a_body_is_sent_again_whole_as_long_as_its_beginning_is_here() {
    const LIMIT: &str = "limits: [{key: param.user, rate: 100/minute}]";
    let form = format!("user={}", "x".repeat(50_000));
    for (body, config) in [("user=alice", ""), ("user=alice", LIMIT), (form.as_str(), LIMIT)] {
        let origin = Http2Origin::start();
        let answer = origin.gateway_with(config).post("/refuse").form(body).send();
        assert_eq!((answer.status, answer.text()), (200, format!("{} bytes", body.len())), "{config}");
        assert_eq!(origin.seen.count("/refuse"), 2, "{config}");
    }
    let origin = Http2Origin::start();
    assert_eq!(origin.gateway().post("/refuse-late").form(&"x".repeat(100_000)).status(), 502);
    assert_eq!(origin.seen.count("/refuse-late"), 1);
}

#[test]
fn a_request_refused_again_and_again_is_502() {
    let origin = Http2Origin::start();
    assert_eq!(
        origin
            .gateway_with("server: {inspect_body: 1MiB}\nlimits: [{key: param.user, rate: 100/minute}]")
            .post("/refuse-late")
            .form(&"x".repeat(100_000))
            .status(),
        502
    );
    assert_eq!(origin.seen.count("/refuse-late"), 3);
}

#[test]
fn a_get_is_sent_once_more_when_the_connection_died_and_a_post_is_not() {
    let origin = Http2Origin::start();
    let gateway = origin.gateway();
    assert_eq!(gateway.post("/die").form("a=b").status(), 502);
    assert_eq!(origin.seen.count("/die"), 1);
    assert_eq!(gateway.get("/die").status(), 502);
    assert_eq!(origin.seen.count("/die"), 3);
    assert_eq!(gateway.get("/").status(), 200);
}

#[test]
fn an_answer_that_is_reset_is_cut_short() {
    let origin = Http2Origin::start();
    let gateway = origin.gateway();
    let answer = gateway.get("/cut").send();
    assert_eq!(answer.status, 200);
    assert!(!answer.whole);
}

#[test]
fn grpc_passes_with_trailers_and_streams_both_ways() {
    let origin = Http2Origin::start();
    let gateway = origin.gateway();
    over_http2(&gateway, async |sender| {
        let request = |path: &str| {
            let request = Request::post(format!("http://app.example{path}"));
            request.header("te", "trailers").header("content-type", "application/grpc").body(()).expect("a request")
        };
        let mut sender = sender.ready().await.expect("ready");
        let (answer, mut upload) = sender.send_request(request("/echo"), false).expect("sent");
        let (head, mut body) = answer.await.expect("the head before any of the body").into_parts();
        assert_eq!(head.status, 200);
        for piece in ["ping", "pong"] {
            upload.send_data(Bytes::from(piece), false).expect("sent");
            let echoed = body.data().await.expect("an echo before the end").expect("data");
            body.flow_control().release_capacity(echoed.len()).expect("received");
            assert_eq!(echoed, piece);
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-checksum", HeaderValue::from_static("abc"));
        upload.send_trailers(trailers).expect("sent");
        assert!(body.data().await.is_none());
        let trailers = body.trailers().await.expect("whole").expect("trailers");
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(trailers["x-checksum"], "abc");

        let (answer, _) =
            sender.ready().await.expect("ready").send_request(request("/trailers-only"), true).expect("sent");
        let (head, mut body) = answer.await.expect("an answer").into_parts();
        assert_eq!(head.headers["grpc-status"], "5");
        assert!(body.data().await.is_none());
    });
    assert_eq!(origin.seen.last().headers["te"], "trailers");
}

#[test]
fn over_tls_http2_is_agreed_on_or_the_server_counts_as_down() {
    let (authority, origin) = (CertificateAuthority::generate(), Http2Origin::start());
    for (offered, status) in [(&["h2"][..], 200), (&["http/1.1"], 502), (&[], 502)] {
        let server = SecureOrigin::offering(origin.address, &authority, &["127.0.0.1"], offered);
        let config = format!(
            "upstream: app\nupstreams:\n  app: {{servers: [{}], http2: true, tls: {{ca: ca.pem}}}}",
            server.url()
        );
        let gateway = Gateway::with_files(config, &[("ca.pem", authority.pem())]);
        assert_eq!(gateway.get("/").status(), status, "{offered:?}");
    }
    assert_eq!(origin.seen.last().uri.scheme_str(), Some("https"));
}

#[test]
fn a_server_that_does_not_speak_http2_is_502_and_upgrades_go_over_http1() {
    let origin = Origin::start();
    let config = format!("upstream: app\nupstreams:\n  app: {{servers: [{}], http2: true}}", origin.url());
    let gateway = Gateway::start(config);
    assert_eq!(gateway.get("/").status(), 502);
    let upgrade = gateway.get("/socket").header("Connection", "upgrade").header("Upgrade", "websocket");
    assert_eq!(upgrade.status(), 200);
    assert!(origin.last().head.starts_with("GET /socket HTTP/1.1\r\n"));
}

#[test]
fn health_is_asked_over_http2_too() {
    let origin = Http2Origin::start();
    let gateway = Gateway::start(format!(
        "upstream: app\nupstreams:\n  app: {{servers: ['http://{}'], http2: true, health: {{path: /well, every: 20ms, unhealthy: 1}}}}",
        origin.address
    ));
    eventually("health is asked", || origin.seen.count("/well") > 3);
    assert_eq!(gateway.get("/").status(), 200);
}
