//! The cookie of a session. It ends when the browser is closed.

use http::HeaderMap;
use http::HeaderValue;
use http::header::COOKIE;

/// The value of `Set-Cookie` for a session that begins.
pub(super) fn opened(host: Option<&str>, id: &str, is_secure: bool) -> HeaderValue {
    let secure = if is_secure { "; Secure" } else { "" };
    cookie(&format!("{}={id}; Path=/; HttpOnly; SameSite=Strict{secure}", name(host)))
}

/// The value of `Set-Cookie` for a session that ends.
pub(super) fn ended(host: Option<&str>) -> HeaderValue {
    cookie(&format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", name(host)))
}

/// What may be ids of sessions: the values of our cookies, of every port of this host.
pub(in crate::admin) fn session_ids(headers: &HeaderMap) -> Vec<&str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| name.starts_with(PREFIX)).map(|(_, value)| value).take(MAX_COOKIES).collect()
}

/// Cookies belong to a host with all its ports: two gateways of one host need two names.
fn name(host: Option<&str>) -> String {
    let port = host.and_then(|host| host.rsplit_once(':')?.1.parse::<u16>().ok());
    port.map_or_else(|| PREFIX.to_owned(), |port| format!("{PREFIX}_{port}"))
}

fn cookie(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("names and ids are plain letters")
}

const PREFIX: &str = "portcullis_session";

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
        assert!(opened(None, "abc", true).to_str().unwrap().ends_with("; Secure"));
        assert!(ended(None).to_str().unwrap().contains("Max-Age=0"));
    }

    #[test]
    fn only_our_cookies_are_read() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=b; portcullis_session_1=x; portcullis_session=y".parse().unwrap());
        assert_eq!(session_ids(&headers), ["x", "y"]);
        assert!(session_ids(&HeaderMap::new()).is_empty());
    }
}
