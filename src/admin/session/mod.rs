//! Sessions of the dashboard: a browser sends the token once, and a cookie from then on.

mod attempts;
mod cookie;
mod endpoints;
mod place;
mod sessions;

pub(super) use self::attempts::FailedAttempts;
pub(super) use self::cookie::session_ids;
pub(super) use self::endpoints::CSRF_HEADER;
pub(super) use self::endpoints::routes;
pub(super) use self::endpoints::too_many_attempts;
pub(super) use self::place::SessionPlace;
pub(super) use self::place::peer;
pub(super) use self::sessions::Sessions;
