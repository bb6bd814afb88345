//! ab (Apache): many HTTP/1.0 requests, with and without keep-alive.

use std::fs;

use crate::site::Site;
use crate::support::Origin;
use crate::tool::run;

/// The numbers that ab prints: complete, failed, answered otherwise than 2xx, on connections that stayed.
fn ab(site: &Site, arguments: &[&str], scheme: &str, path: &str) -> [usize; 4] {
    let address = if scheme == "https" { site.secure } else { site.plain };
    let url = format!("{scheme}://{address}{path}");
    let said = run(&site.gateway.path("."), "ab", &[&["-q", "-s", "60"], arguments, &[&url]].concat());
    assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    ["Complete requests:", "Failed requests:", "Non-2xx responses:", "Keep-Alive requests:"].map(|name| {
        let line = said.text.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |number| number.trim().parse().expect("a number"))
    })
}

#[test]
fn every_request_succeeds_on_connections_that_stay_and_on_ones_that_do_not() {
    let origin = Origin::start();
    let site = Site::before(&origin.url(), "");
    for (scheme, requests) in [("http", 600), ("https", 200)] {
        let number = requests.to_string();
        assert_eq!(ab(&site, &["-n", &number, "-c", "20"], scheme, "/"), [requests, 0, 0, 0], "{scheme}");
        assert_eq!(ab(&site, &["-n", &number, "-c", "20", "-k"], scheme, "/"), [requests, 0, 0, requests], "{scheme}");
        assert_eq!(
            ab(&site, &["-n", &number, "-c", "5", "-k", "-i"], scheme, "/"),
            [requests, 0, 0, requests],
            "{scheme}"
        );
    }
    fs::write(site.gateway.path("form"), "a=b&c=d").expect("a file");
    let post = ["-n", "100", "-c", "10", "-k", "-p", "form", "-T", "application/x-www-form-urlencoded"];
    assert_eq!(ab(&site, &post, "http", "/"), [100, 0, 0, 100]);
    assert_eq!(origin.last().text(), "a=b&c=d");
    assert_eq!(origin.count(), 3 * 800 + 100);
}
