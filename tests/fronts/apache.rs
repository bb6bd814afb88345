//! Apache with `config/with/apache.conf` and its Lua.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::proxies;
use crate::proxies::{Asking, Ready};

const LUA: &str = include_str!("../../config/with/apache.lua");

fn apache(lua: &str) -> Asking {
    let ready = Ready {
        text: include_str!("../../config/with/apache.conf"),
        listen: "0.0.0.0:80",
        listen_on: |address| address.to_string(),
        files: &[("apache.lua", lua)],
    };
    proxies::start(&ready, proxies::RULES, |folder, address| {
        // It reads its Lua as another user.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("our folder");
        let mut main = format!(
            "ServerRoot {0}\nServerName app.example\nUser nobody\nGroup nogroup\nPidFile {0}/pid\nErrorLog {0}/error.log\n\
             DefaultRuntimeDir {0}\nMutex posixsem default\n",
            folder.display()
        );
        for module in ["mpm_event", "authz_core", "lua", "proxy", "proxy_http"] {
            writeln!(main, "LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so").expect("a string");
        }
        let ready = fs::read_to_string(folder.join("ready")).expect("just written");
        main += &ready.replace("*:80>", &format!("*:{}>", address.port()));
        fs::write(folder.join("apache.conf"), main).expect("a file in the folder");
        let mut command = Command::new("apache2");
        command.args(["-X", "-f"]).arg(folder.join("apache.conf"));
        command
    })
}

#[test]
fn apache_asks_about_every_request() {
    let mut apache = apache(LUA);
    apache.check_sixth_login();
    apache.check_forged();
    apache.check_dropped();
    apache.check_websocket();
    apache.check_targets();
    apache.check_many_at_once();
    apache.check_delay();
    apache.check_closed_without_gateway();
}

#[test]
fn apache_gives_up_on_a_gateway_that_hangs() {
    apache(&proxies::replaced(LUA, "patience = 60", "patience = 1")).check_closed_while_the_gateway_hangs(503);
}
