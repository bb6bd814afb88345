//! nginx with `config/with/nginx.conf`.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::proxies;
use crate::proxies::{Asking, Ready};

const FILE: &str = include_str!("../../config/with/nginx.conf");

fn nginx(text: &str, rules: &str) -> Asking {
    let ready = Ready {
        text,
        listen: "0.0.0.0:80",
        listen_on: |address| address.to_string(),
        files: &[
            ("pages/slow-down.html", proxies::PAGE),
            ("nginx-headers.conf", include_str!("../../config/with/nginx-headers.conf")),
        ],
    };
    proxies::start(&ready, rules, |folder, _| {
        let main = "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\nevents { worker_connections 512; }\n\
            http {\naccess_log off;\nclient_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\n\
            uwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\ninclude ready;\n}\n";
        fs::write(folder.join("nginx.conf"), main).expect("a file in the folder");
        let mut command = Command::new("nginx");
        command.args(["-e", "error.log", "-c", "nginx.conf", "-p"]).arg(folder);
        command
    })
}

#[test]
fn nginx_asks_about_every_request() {
    let mut nginx = nginx(FILE, proxies::RULES);
    nginx.check_sixth_login();
    nginx.check_forged();
    nginx.check_dropped();
    nginx.check_websocket();
    nginx.check_targets();
    nginx.check_many_at_once();
    nginx.check_delay();
    nginx.check_closed_without_gateway();
}

/// Statuses of denials that nginx hands on.
const STATUSES: [u16; 28] = [
    301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 406, 409, 410, 413, 418, 420, 421, 422, 423, 425, 428, 431,
    451, 500, 502, 503, 504,
];

#[test]
fn nginx_hands_on_the_status_and_the_place_of_a_denial() {
    let mut rules = String::from("routes:\n");
    for status in STATUSES {
        let place = if status < 400 { ", redirect: /slow?a=b" } else { "" };
        writeln!(
            rules,
            "  - {{match: /{status}, limits: [{{name: denied{status}, key: client_ip, rate: 1/hour, \
             then: {{deny: {{status: {status}{place}}}}}}}]}}"
        )
        .expect("a string");
    }
    let nginx = nginx(FILE, &rules);
    for status in STATUSES {
        let page = nginx.request("GET", &format!("/{status}"));
        assert_eq!(page.status(), 200, "{status}");
        let denied = page.send();
        assert_eq!(denied.status, status);
        assert_eq!(denied.header("location"), (status < 400).then_some("/slow?a=b"), "{status}");
        assert_eq!(denied.header("cache-control"), Some("no-store"), "{status}");
        assert!(denied.header("retry-after").is_some(), "{status}: {:?}", denied.headers);
        assert_eq!(denied.header("x-request-id").map(str::len), Some(32), "{status}");
    }
}

#[test]
fn nginx_gives_up_on_a_gateway_that_hangs() {
    let file = proxies::replaced(FILE, "proxy_read_timeout 60s", "proxy_read_timeout 1s");
    nginx(&file, proxies::RULES).check_closed_while_the_gateway_hangs(500);
}
