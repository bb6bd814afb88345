//! The gateway's own cookies, hidden from the application; and the device cookie on the answer that makes a client known.

use crate::client::DeviceId;
use crate::client::device;
use crate::client::device::DeviceOwner;
use crate::client::own_cookies::has_own;
use crate::client::own_cookies::is_own;
use crate::clock::Timestamp;
use crate::decision::Policy;
use crate::decision::device::DeviceEnrollment;
use crate::head::Fields;
use crate::head::KnownName;
use crate::signing::KeyRing;

/// Removes the gateway's own cookies from a request: the application must not see them. Lines without one stay as they came,
/// and a line with nothing else is removed.
pub fn strip_request_cookies(fields: &mut Fields) {
    if !fields.get_all(KnownName::COOKIE).any(has_own) {
        return;
    }
    let lines: Vec<Vec<u8>> = fields.get_all(KnownName::COOKIE).filter_map(stripped).collect();
    fields.remove(KnownName::COOKIE);
    for line in lines {
        fields.append(KnownName::COOKIE, &line);
    }
}

/// Removes cookies of the gateway's names from an application's answer: only the gateway may set them.
pub fn strip_response_cookies(fields: &mut Fields) {
    if fields.get_all(KnownName::SET_COOKIE).any(is_own) {
        fields.retain(|field| field.name != KnownName::SET_COOKIE.into() || !is_own(field.value));
    }
}

/// The `Set-Cookie` that enrolls a device or renews its cookie. `None` when the route has no known clients.
pub fn set_cookie(
    policy: &Policy,
    ring: &KeyRing,
    now: Timestamp,
    enrollment: &DeviceEnrollment,
    is_secure: bool,
) -> Option<String> {
    let route = policy.routes.get(enrollment.route);
    let keep = route.known_clients.as_ref()?.keep;
    let device = enrollment.device.unwrap_or_else(random_device);
    let subject = DeviceOwner { route: &route.name, name: &enrollment.name };
    let device::IssuedCookie { name, value } = device::issue(ring, now, subject, device, keep);
    let secure = if is_secure { "; Secure" } else { "" };
    Some(format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", keep.as_secs()))
}

fn random_device() -> DeviceId {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    DeviceId::new(bytes)
}

/// The line without our cookies; `None` when nothing is left.
fn stripped(line: &[u8]) -> Option<Vec<u8>> {
    if !has_own(line) {
        return Some(line.to_vec());
    }
    let kept = line.split(|byte| *byte == b';').filter(|pair| !is_own(pair));
    let kept: Vec<&[u8]> = kept.map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty()).collect();
    if kept.is_empty() { None } else { Some(kept.join(&b"; "[..])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(name: KnownName, lines: &[&str]) -> Fields {
        lines.iter().map(|line| (name, *line)).collect()
    }

    fn lines(name: KnownName, fields: &Fields) -> Vec<&str> {
        fields.get_all(name).map(|line| str::from_utf8(line).unwrap()).collect()
    }

    #[track_caller]
    fn check(sent: &[&str], left: &[&str]) {
        let mut fields = fields(KnownName::COOKIE, sent);
        strip_request_cookies(&mut fields);
        assert_eq!(lines(KnownName::COOKIE, &fields), left, "{sent:?}");
    }

    #[test]
    fn our_cookies_are_taken_out_of_every_line() {
        check(&[], &[]);
        check(&["a=1;b=2", "c=3"], &["a=1;b=2", "c=3"]);
        check(&["portcullis_device_1=x"], &[]);
        check(&["a=1; portcullis_device_1=x; b=2;portcullis_device_2=y"], &["a=1; b=2"]);
        check(&["a=1", "portcullis_device_1=x", "b=2; portcullis_device_"], &["a=1", "b=2"]);
        check(&["Portcullis_Device_1=x;  PORTCULLIS_DEVICE_2 = y; ;"], &[]);
        check(&["\"portcullis_device_1\"=x; a=portcullis_device_1"], &["a=portcullis_device_1"]);
        check(&["my_portcullis_device_1=x"], &["my_portcullis_device_1=x"]);
        check(&["a=1; portcullis_session_9090=x", "__Host-portcullis_session=y"], &["a=1"]);
    }

    #[test]
    fn an_application_sets_none() {
        let mut fields = fields(
            KnownName::SET_COOKIE,
            &["a=1; Path=/", " Portcullis_device_1=x; Path=/", "portcullis_session=x", "b=2"],
        );
        strip_response_cookies(&mut fields);
        assert_eq!(lines(KnownName::SET_COOKIE, &fields), ["a=1; Path=/", "b=2"]);
    }
}
