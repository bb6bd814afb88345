//! uWSGI, which resolves dots and ignores malformed escapes.

use std::process::Command;

use crate::login::check;
use crate::support::Program;

#[test]
fn what_uwsgi_reads_as_the_login_is_charged_to_it() {
    let uwsgi = Program::start(&[("wsgi_login.py", include_str!("wsgi_login.py"))], |_, address| {
        let mut command = Command::new("uwsgi-core");
        command.args(["--plugins", "http,python3", "--http", &address.to_string(), "--wsgi-file", "wsgi_login.py"]);
        command.args(["--master", "--die-on-term", "--no-orphans", "--disable-logging"]);
        command
    });
    check(uwsgi.address(), "/login", 30);
}
