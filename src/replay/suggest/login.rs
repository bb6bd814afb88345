//! Which routes are logins, and how their failures look.

use super::figures::Statuses;

/// How an application answers a login that failed, as far as statuses tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FailureSign {
    /// 401 or 403.
    Refused,
    /// 200: the form is shown again. A success redirects.
    FormAgain,
    /// Statuses do not tell.
    None,
}

/// Why a route is taken for a login, and what tells a failure. `None`: it is none.
pub(super) fn login(method: &str, path: &str, statuses: &Statuses) -> Option<(String, FailureSign)> {
    if method != "POST" {
        return None;
    }
    let named = NAMES.iter().find(|name| path.contains(**name));
    let refused = statuses.percent(statuses.refused);
    let reason = match named {
        Some(name) => format!("a login by its name (`{name}`)"),
        None if statuses.total >= ENOUGH && refused >= MANY_REFUSED => {
            format!("like a login: {refused} % were answered with 401 or 403")
        }
        None => return None,
    };
    let sign = if statuses.refused > 0 {
        FailureSign::Refused
    } else if statuses.redirects > 0 && statuses.ok > 0 {
        FailureSign::FormAgain
    } else {
        FailureSign::None
    };
    Some((reason, sign))
}

/// Whether a path is that of a login by its name.
pub(super) fn is_named_like_a_login(path: &str) -> bool {
    NAMES.iter().any(|name| path.contains(name))
}

/// Parts of paths in lower case.
const NAMES: [&str; 13] = [
    "login", "signin", "sign-in", "sign_in", "logon", "log-in", "session", "auth", "token", "xmlrpc", "password",
    "passwd", "signup",
];

/// Of fewer requests, a share says little.
const ENOUGH: u64 = 20;

/// In percent.
const MANY_REFUSED: u64 = 20;
