//! PHP's built-in server.

use std::process::Command;

use crate::login::Asked;
use crate::login::check;
use crate::login::check_route;
use crate::methods;
use crate::site::SITE;
use crate::spelling;
use crate::support::Program;

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
