//! nginx with `config/with/nginx.conf`.

use std::fs;
use std::process::Command;

use crate::proxies;
use crate::proxies::Asking;
use crate::proxies::Ready;

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
    nginx.check_targets();
    nginx.check_many_at_once();
    nginx.check_delay();
    nginx.check_closed_without_gateway();
}
