//! Device cookies: hidden from the application, and set on the answer that makes a client known.

use http::HeaderMap;
use http::HeaderValue;
use http::header::COOKIE;
use http::header::SET_COOKIE;

use crate::client::DeviceId;
use crate::client::device;
use crate::client::device::COOKIE_PREFIX;
use crate::client::device::DeviceOwner;
use crate::clock::Timestamp;
use crate::decision::Policy;
use crate::decision::device::DeviceEnrollment;
use crate::signing::KeyRing;

/// Removes device cookies from a request: the application must not see them. Lines without a device cookie stay as they
/// came, and a line with nothing else is removed.
pub fn strip_request_cookies(headers: &mut HeaderMap) {
    let mut pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    if !pairs.any(is_device) {
        return;
    }
    let lines: Vec<HeaderValue> = headers.get_all(COOKIE).iter().filter_map(stripped).collect();
    headers.remove(COOKIE);
    for line in lines {
        headers.append(COOKIE, line);
    }
}

/// Removes device cookies from an application's answer: only the gateway may set them.
pub fn strip_response_cookies(headers: &mut HeaderMap) {
    let is_ours = |line: &HeaderValue| is_device(line.as_bytes());
    if !headers.get_all(SET_COOKIE).iter().any(is_ours) {
        return;
    }
    let lines: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().filter(|line| !is_ours(line)).cloned().collect();
    headers.remove(SET_COOKIE);
    for line in lines {
        headers.append(SET_COOKIE, line);
    }
}

/// The `Set-Cookie` that enrolls a device or renews its cookie. `None` when the route has no known clients.
pub fn set_cookie(
    policy: &Policy,
    ring: &KeyRing,
    now: Timestamp,
    enrollment: &DeviceEnrollment,
    is_secure: bool,
) -> Option<HeaderValue> {
    let route = policy.routes.get(enrollment.route);
    let keep = route.known_clients.as_ref()?.keep;
    let device = enrollment.device.unwrap_or_else(random_device);
    let subject = DeviceOwner { route: &route.name, name: &enrollment.name };
    let device::IssuedCookie { name, value } = device::issue(ring, now, subject, device, keep);
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", keep.as_secs());
    HeaderValue::try_from(cookie).ok()
}

fn random_device() -> DeviceId {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    DeviceId::new(bytes)
}

/// The line without device cookies; `None` when nothing is left.
fn stripped(line: &HeaderValue) -> Option<HeaderValue> {
    if !line.as_bytes().split(|byte| *byte == b';').any(is_device) {
        return Some(line.clone());
    }
    let kept = line.as_bytes().split(|byte| *byte == b';').filter(|pair| !is_device(pair));
    let kept: Vec<&[u8]> = kept.map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty()).collect();
    if kept.is_empty() { None } else { HeaderValue::from_bytes(&kept.join(&b"; "[..])).ok() }
}

/// Whether some application may read this as a device cookie: without case, or without quotes and other characters
/// around the name.
fn is_device(pair: &[u8]) -> bool {
    let start = pair.iter().position(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').unwrap_or(pair.len());
    let name = &pair[start..];
    name.get(..COOKIE_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(COOKIE_PREFIX.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &http::HeaderName, lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), HeaderValue::from_str(line).unwrap())).collect()
    }

    #[track_caller]
    fn check(sent: &[&str], left: &[&str]) {
        let mut headers = lines(&COOKIE, sent);
        strip_request_cookies(&mut headers);
        assert_eq!(headers.get_all(COOKIE).iter().collect::<Vec<_>>(), left, "{sent:?}");
    }

    #[test]
    fn device_cookies_are_taken_out_of_every_line() {
        check(&[], &[]);
        check(&["a=1;b=2", "c=3"], &["a=1;b=2", "c=3"]);
        check(&["portcullis_device_1=x"], &[]);
        check(&["a=1; portcullis_device_1=x; b=2;portcullis_device_2=y"], &["a=1; b=2"]);
        check(&["a=1", "portcullis_device_1=x", "b=2; portcullis_device_"], &["a=1", "b=2"]);
        check(&["Portcullis_Device_1=x;  PORTCULLIS_DEVICE_2 = y; ;"], &[]);
        check(&["\"portcullis_device_1\"=x; a=portcullis_device_1"], &["a=portcullis_device_1"]);
        check(&["my_portcullis_device_1=x"], &["my_portcullis_device_1=x"]);
    }

    #[test]
    fn an_application_sets_none() {
        let mut headers = lines(&SET_COOKIE, &["a=1; Path=/", " Portcullis_device_1=x; Path=/", "b=2"]);
        strip_response_cookies(&mut headers);
        assert_eq!(headers.get_all(SET_COOKIE).iter().collect::<Vec<_>>(), ["a=1; Path=/", "b=2"]);
    }
}
