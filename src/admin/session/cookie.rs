//! The cookie of a session. It ends when the browser is closed.

use http::HeaderMap;
use http::HeaderValue;
use http::header::COOKIE;

use crate::client::own_cookies::DASHBOARD_COOKIE;

/// The value of `Set-Cookie` for a session that begins.
pub(super) fn opened(host: Option<&str>, id: &str, is_secure: bool) -> HeaderValue {
    let (name, attributes) = (name(host, is_secure), attributes(is_secure));
    cookie(&format!("{name}={id}; {attributes}"))
}

/// The value of `Set-Cookie` for a session that ends.
pub(super) fn ended(host: Option<&str>, is_secure: bool) -> HeaderValue {
    let (name, attributes) = (name(host, is_secure), attributes(is_secure));
    cookie(&format!("{name}=; Max-Age=0; {attributes}"))
}

/// What may be ids of sessions: the values of our cookies, of every port of this host.
pub(in crate::admin) fn session_ids(headers: &HeaderMap) -> Vec<&str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let is_ours = |name: &str| name.strip_prefix(HOST_PREFIX).unwrap_or(name).starts_with(DASHBOARD_COOKIE);
    pairs.filter(|(name, _)| is_ours(name)).map(|(_, value)| value).take(MAX_COOKIES).collect()
}

/// Cookies belong to a host with all its ports: two gateways of one host need two names.
fn name(host: Option<&str>, is_secure: bool) -> String {
    let prefix = if is_secure { HOST_PREFIX } else { "" };
    let port = host.and_then(|host| host.rsplit_once(':')?.1.parse::<u16>().ok());
    port.map_or_else(|| format!("{prefix}{DASHBOARD_COOKIE}"), |port| format!("{prefix}{DASHBOARD_COOKIE}_{port}"))
}

fn attributes(is_secure: bool) -> &'static str {
    if is_secure { "Path=/; HttpOnly; SameSite=Strict; Secure" } else { "Path=/; HttpOnly; SameSite=Strict" }
}

fn cookie(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("names and ids are plain letters")
}

/// Browsers take a cookie of such a name only over TLS, and only from the host itself: no other host of the domain can set it.
const HOST_PREFIX: &str = "__Host-";

/// One for each gateway of a host.
const MAX_COOKIES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_of_a_host_has_its_own_cookie() {
        let set = |host| opened(Some(host), "abc", false).to_str().unwrap().to_owned();
        assert_eq!(set("127.0.0.1:9090"), "portcullis_session_9090=abc; Path=/; HttpOnly; SameSite=Strict");
        assert!(set("[::1]:9091").starts_with("portcullis_session_9091="));
        assert!(set("admin.example").starts_with("portcullis_session="));
        assert!(ended(None, false).to_str().unwrap().contains("Max-Age=0"));
    }

    #[test]
    fn over_tls_a_browser_takes_it_from_this_host_alone() {
        let set = opened(Some("admin.example"), "abc", true);
        assert_eq!(set, "__Host-portcullis_session=abc; Path=/; HttpOnly; SameSite=Strict; Secure");
        let ended = ended(Some("admin.example:8443"), true).to_str().unwrap().to_owned();
        assert_eq!(ended, "__Host-portcullis_session_8443=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure");
    }

    #[test]
    fn only_our_cookies_are_read() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=b; portcullis_session_1=x; __Host-portcullis_session=y; __Host-a=z".parse().unwrap());
        assert_eq!(session_ids(&headers), ["x", "y"]);
        assert!(session_ids(&HeaderMap::new()).is_empty());
    }
}
