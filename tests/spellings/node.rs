//! Node, where applications parse the target as a URL.

use std::process::Command;

use crate::login::check;
use crate::support::Program;

#[test]
fn what_node_reads_as_the_login_is_charged_to_it() {
    let node = Program::start(&[("login.js", include_str!("login.js"))], |_, address| {
        let mut command = Command::new("node");
        command.args(["login.js", &address.ip().to_string(), &address.port().to_string()]);
        command
    });
    check(node.address(), "/login", 50);
}
