//! gunicorn, which decodes a path once and believes headers of trusted proxies.

use crate::login::check;
use crate::support::{Program, python};

pub(crate) fn start() -> Program {
    Program::start(&[("wsgi_login.py", include_str!("wsgi_login.py"))], |folder, address| {
        let mut command = python(folder);
        command.env("HOME", folder);
        command.args(["-m", "gunicorn", "--bind", &address.to_string(), "wsgi_login"]);
        command
    })
}

#[test]
fn what_gunicorn_reads_as_the_login_is_charged_to_it() {
    check(start().address(), "/login", 10);
}
