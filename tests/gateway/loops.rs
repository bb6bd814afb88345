//! Requests that come back to the gateway that has forwarded them.

use std::net::TcpListener;

use crate::support::{Gateway, Nginx, Origin, eventually};

/// An address that no process listens on.
fn free() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound")
}

fn said(gateway: &Gateway) -> usize {
    gateway.log_messages().iter().filter(|line| line.contains("came back to the gateway")).count()
}

#[test]
fn a_gateway_that_is_its_own_upstream_answers_508_at_once_and_says_so_once() {
    let address = free();
    let gateway =
        Gateway::start(format!("listen: {address}\nupstream: http://{address}\nadmin: {{address: 127.0.0.1:0}}"));
    for _ in 0..5 {
        assert_eq!(gateway.get("/").status(), 508);
    }
    assert_eq!(gateway.post("/").body("text/plain", "a").status(), 508);
    // The request that comes back has a line of its own, and so has the one that is answered with its answer.
    let cause = "this gateway has forwarded the request already";
    assert_eq!(gateway.log_line_where(|line| line["error"] == cause)["status"], 508);
    eventually("it says so", || said(&gateway) > 0);
    assert_eq!(said(&gateway), 1);
    assert!(gateway.connections() < 10);
}

#[test]
fn two_gateways_and_an_nginx_between_them_are_a_loop() {
    let (first, second) = (free(), free());
    let nginx = Nginx::start(
        &format!(
            "server {{\nlisten LISTEN;\nlocation / {{\nproxy_pass http://{first};\nproxy_http_version 1.1;\n\
             proxy_set_header Connection \"\";\n}}\n}}"
        ),
        &[],
    );
    let one = Gateway::start(format!("listen: {first}\nupstream: http://{second}"));
    let other = Gateway::start(format!("listen: {second}\nupstream: http://{}", nginx.address()));
    assert_eq!(one.get("/").status(), 508);
    eventually("the first says so, and the other does not", || (said(&one), said(&other)) == (1, 0));
}

#[test]
fn gateways_in_a_row_are_no_loop_and_no_client_writes_the_mark() {
    let origin = Origin::start();
    let inner = Gateway::start(format!("upstream: {}", origin.url()));
    let outer = Gateway::start(format!("upstream: http://{}", inner.address()));
    for _ in 0..2 {
        assert_eq!(outer.get("/").header("Portcullis-Loop", "AAAAAAAAAAAAAAAAAAAAAA").status(), 200);
    }
    let marks: Vec<_> = origin.requests().iter().map(|request| request.headers.all("portcullis-loop").len()).collect();
    assert_eq!(marks, [3, 3]);
}
