//! The files of a site with a login: a script, a front controller, an index, and CGI programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// By their names.
pub(crate) const SITE: &[(&str, &str)] = &[
    ("site/index.php", include_str!("site/index.php")),
    ("site/wp-login.php", include_str!("site/wp-login.php")),
    ("site/method.php", include_str!("site/method.php")),
    ("site/account/index.php", include_str!("site/account/index.php")),
    ("site/signin.cgi", include_str!("site/signin.cgi")),
    ("site/signin.pl", include_str!("site/signin.pl")),
    ("site/cgi-bin/login", include_str!("site/cgi-bin/login")),
    ("site/.htaccess", include_str!("site/.htaccess")),
];

/// Makes a folder readable and its programs executable for all users: a server started as root changes its user.
pub(crate) fn open(folder: &Path) {
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    allow(folder, 0o755);
    for program in ["site/signin.cgi", "site/signin.pl", "site/cgi-bin/login"] {
        allow(&folder.join(program), 0o755);
    }
}
