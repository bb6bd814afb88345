//! h2load and nghttp: many streams at once, of which exactly the allowed number passes.

use std::fs;

use crate::site::Site;
use crate::support::{Answer, Origin, digest};
use crate::tool::run;

/// What h2load says of its requests, and of their answers.
fn h2load(site: &Site, arguments: &[&str], url: &str) -> (String, String) {
    let said = run(&site.gateway.path("."), "h2load", &[arguments, &[url]].concat());
    let line = |start: &str| {
        let line = said.text.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("no {start:?}: {said:?}")).to_owned()
    };
    (line("requests: "), line("status codes: "))
}

/// Where they are without a name.
fn url(site: &Site, scheme: &str, path: &str) -> String {
    let address = if scheme == "https" { site.secure } else { site.plain };
    format!("{scheme}://{address}{path}")
}

/// Of so many all succeed.
fn all(requests: usize) -> (String, String) {
    (
        format!(
            "{requests} total, {requests} started, {requests} done, {requests} succeeded, 0 failed, 0 errored, 0 timeout"
        ),
        format!("{requests} 2xx, 0 3xx, 0 4xx, 0 5xx"),
    )
}

#[test]
fn every_request_on_many_streams_succeeds() {
    let origin = Origin::start();
    let site = Site::before(&origin.url(), "");
    for scheme in ["https", "http"] {
        for arguments in [
            &["-n", "600", "-c", "4", "-m", "100"][..],
            // More streams than are allowed at a time, frames and windows of other sizes, few connections and many.
            &["-n", "300", "-c", "1", "-m", "1000", "-w", "16", "-W", "16"],
            &["-n", "300", "-c", "30", "-m", "1", "--header-table-size", "0"],
            &[
                "-n",
                "300",
                "-c",
                "3",
                "-m",
                "10",
                "-f",
                "65536",
                "-H",
                "x-long: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ],
            &["-n", "200", "-c", "5", "--h1"],
        ] {
            let requests = arguments[1].parse().expect("a number");
            assert_eq!(h2load(&site, arguments, &url(&site, scheme, "/")), all(requests), "{scheme} {arguments:?}");
        }
    }
    assert_eq!(origin.count(), 2 * 1700);
}

#[test]
fn bodies_on_many_streams_arrive_whole() {
    let content = vec![b'x'; 200_000];
    let expected = digest(&content);
    let origin = Origin::answering(move |received| {
        let whole = received.body_digest == expected;
        Answer::new(if whole { 200 } else { 500 }, &[], &received.body)
    });
    let site = Site::before(&origin.url(), "");
    fs::write(site.gateway.path("body"), content).expect("a file");
    for scheme in ["https", "http"] {
        let arguments = ["-n", "60", "-c", "2", "-m", "30", "-d", "body"];
        assert_eq!(h2load(&site, &arguments, &url(&site, scheme, "/")), all(60), "{scheme}");
    }
}

#[test]
fn exactly_as_many_pass_as_a_limit_lets_through() {
    let origin = Origin::start();
    let site = Site::before(&origin.url(), "limits: [{name: some, key: query.key, rate: 137/hour}]");
    for (number, (scheme, arguments)) in [
        ("https", &["-n", "400", "-c", "8", "-m", "50"][..]),
        ("http", &["-n", "400", "-c", "1", "-m", "100"]),
        ("https", &["-n", "400", "-c", "16", "--h1"]),
    ]
    .into_iter()
    .enumerate()
    {
        let (requests, answers) = h2load(&site, arguments, &url(&site, scheme, &format!("/?key={number}")));
        assert_eq!(answers, "137 2xx, 0 3xx, 263 4xx, 0 5xx", "{arguments:?}");
        assert!(requests.starts_with("400 total, 400 started, 400 done"), "{requests}");
        assert!(requests.ends_with("0 errored, 0 timeout"), "{requests}");
        assert_eq!(origin.count(), 137 * (number + 1));
    }
}

#[test]
fn nghttp_is_served_whatever_frames_it_sends() {
    let origin = Origin::answering(|received| Answer::ok(received.body_length.to_string()));
    // Whatever the log tells of it.
    let site = Site::before(&origin.url(), "log: {level: trace, format: json, requests: true}");
    fs::write(site.gateway.path("body"), vec![b'x'; 300_000]).expect("a file");
    for scheme in ["https", "http"] {
        let url = url(&site, scheme, "/");
        let nghttp = |arguments: &[&str]| {
            let said = run(&site.gateway.path("."), "nghttp", &[&["-y"], arguments, &[&url]].concat());
            assert_eq!(said.code, Some(0), "{scheme} {arguments:?}: {said:?}");
            said.text
        };
        let statistics = nghttp(&["-n", "-s", "-m", "120"]);
        assert_eq!(statistics.lines().filter(|line| line.contains(" 200 ") && line.ends_with(" /")).count(), 120);
        assert_eq!(nghttp(&["-m", "3"]), "000");
        assert_eq!(nghttp(&["-d", "body"]), "300000");
        assert_eq!(nghttp(&["-d", "body", "--no-content-length", "-b", "200"]), "300000");
        assert_eq!(nghttp(&["-d", "body", "--expect-continue"]), "300000");
        assert_eq!(nghttp(&["-d", "body", "--no-content-length", "--trailer", "x-sum: 17"]), "300000");
        assert_eq!(origin.last().trailers.get("x-sum"), Some("17"), "{scheme}");
        // A head in several frames, padded, without priorities, with no table to compress by.
        assert_eq!(nghttp(&["--continuation", "-b", "100", "--no-dep"]), "0");
        assert_eq!(nghttp(&["-c", "0", "-w", "10", "-W", "10"]), "0");
    }
}
