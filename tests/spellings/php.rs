//! PHP's built-in server.

use std::process::Command;

use crate::login::{Asked, check, check_route};
use crate::site::SITE;
use crate::support::Program;
use crate::{methods, spelling};

fn php() -> Program {
    Program::start(SITE, |_, address| {
        let mut command = Command::new("php");
        command.arg("-S").arg(address.to_string()).args(["-t", "site"]);
        command
    })
}

#[test]
fn what_php_reads_as_the_login_is_charged_to_it() {
    let php = php();
    check(php.address(), "/wp-login.php", 200);
    for path in ["/login", "/index.php/login"] {
        check(php.address(), path, 100);
    }
    // An index of this server answers for all below its directory: that is what a prefix is for.
    check_route(php.address(), "POST /account/*", &Asked::post("/account/", ""), &spelling::of("/account/"), 100);
}

#[test]
fn what_php_hands_on_as_the_method_is_charged_to_it() {
    methods::check(php().address());
}
