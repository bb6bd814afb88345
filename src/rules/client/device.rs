//! Device cookies: signed, and bound to one route and one user name, so that a client can neither forge one nor use
//! another user's.

use std::fmt;
use std::time::Duration;

use memchr::memchr_iter;
use smallvec::SmallVec;

use crate::wire::head::{Fields, KnownName};
use crate::words::base64;
use crate::words::clock::Timestamp;
use crate::words::signing::{KeyRing, SIGNATURE_LENGTH, Signature};

/// The start of the name of every device cookie. 16 hexadecimal digits follow, from which only the gateway can tell the
/// user.
pub const COOKIE_PREFIX: &str = "portcullis_device_";

/// The first byte of a value. Another layout begins with another byte.
const VERSION: u8 = 1;

const LENGTH: usize = 1 + 16 + 8 + SIGNATURE_LENGTH;

/// How many digits of base64 a value has.
const DIGITS: usize = (LENGTH * 4).div_ceil(3);

const NAMES: &str = "name of a device cookie";

const VALUES: &str = "device cookie";

/// Other parts of the site may set cookies of the same name. More than a few are not verified.
const MOST_OF_ONE_NAME: usize = 4;

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// A browser that is known for one user name.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct DeviceId([u8; 16]);

/// The user that a device is known for: a user name, in the spelling in which it is compared, on a route.
#[derive(Clone, Copy)]
pub struct DeviceOwner<'a> {
    pub route: &'a str,
    pub name: &'a str,
}

/// The device cookies of a request, not verified yet.
#[derive(Debug, Default)]
pub struct DeviceCookies<'h> {
    cookies: SmallVec<[Cookie<'h>; 2]>,
}

#[derive(Debug)]
struct Cookie<'h> {
    /// The part of its name after the prefix.
    name: &'h [u8],
    device: DeviceId,
    /// In seconds since the Unix epoch.
    expires: u64,
    mac: Signature,
}

/// A cookie to be set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IssuedCookie {
    pub name: String,
    pub value: String,
}

impl<'h> DeviceCookies<'h> {
    /// Skips everything that does not look like a device cookie.
    pub fn read(fields: &'h Fields) -> Self {
        let pairs = fields.get_all(KnownName::COOKIE).flat_map(|line| line.split(|byte| *byte == b';'));
        Self { cookies: pairs.filter_map(|pair| Cookie::read(pair.trim_ascii())).collect() }
    }

    /// The device that is known for this user: the first cookie that is for it, genuine, and not expired.
    pub fn find(&self, ring: &KeyRing, now: Timestamp, owner: DeviceOwner<'_>) -> Option<DeviceId> {
        // Computed once for each key that signed one of them. There are few.
        let mut names: SmallVec<[(Signature, [u8; 16]); 2]> = SmallVec::new();
        let mut is_for_owner = |cookie: &&Cookie<'_>| {
            if let Some((_, name)) = names.iter().find(|(mac, _)| mac.has_key_of(&cookie.mac)) {
                return cookie.name == name;
            }
            let Some(mac) = ring.sign_with_key_of(&cookie.mac, NAMES, &owner.parts()) else { return false };
            let name = digits(&mac);
            names.push((mac, name));
            cookie.name == name
        };
        let candidates = self.cookies.iter().filter(|cookie| is_for_owner(cookie)).take(MOST_OF_ONE_NAME);
        let mut genuine = candidates.filter(|cookie| {
            let [route, name] = owner.parts();
            let message = [route, name, &cookie.device.0, &cookie.expires.to_be_bytes()];
            cookie.expires > seconds(now) && ring.verify(VALUES, &message, &cookie.mac)
        });
        Some(genuine.next()?.device)
    }
}

/// A cookie that makes a device known for this user for `keep`.
pub fn issue(ring: &KeyRing, now: Timestamp, owner: DeviceOwner<'_>, device: DeviceId, keep: Duration) -> IssuedCookie {
    let expires = seconds(now).saturating_add(keep.as_secs()).to_be_bytes();
    let [route, name] = owner.parts();
    let mac = ring.sign(VALUES, &[route, name, &device.0, &expires]);
    let named = ring.sign_with_key_of(&mac, NAMES, &owner.parts()).unwrap_or(mac);
    let mut name = COOKIE_PREFIX.to_owned();
    name.extend(digits(&named).map(char::from));
    let content = [&[VERSION][..], &device.0, &expires, &mac.0].concat();
    IssuedCookie { name, value: base64::encode_url(&content) }
}

impl DeviceId {
    /// `bytes` are random.
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for DeviceId {
    /// 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl DeviceOwner<'_> {
    fn parts(&self) -> [&[u8]; 2] {
        [self.route.as_bytes(), self.name.as_bytes()]
    }
}

/// Without the user name, which does not belong in logs.
impl fmt::Debug for DeviceOwner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceOwner(***)")
    }
}

impl<'h> Cookie<'h> {
    fn read(pair: &'h [u8]) -> Option<Self> {
        let rest = pair.strip_prefix(COOKIE_PREFIX.as_bytes())?;
        let (name, value) = rest.split_at_checked(16)?;
        let content = decode(value.strip_prefix(b"=")?)?;
        let (version, rest) = content.split_first()?;
        let (device, rest) = rest.split_first_chunk()?;
        let (expires, mac) = rest.split_first_chunk()?;
        let mac = Signature(mac.try_into().ok()?);
        let expires = u64::from_be_bytes(*expires);
        (*version == VERSION).then_some(Self { name, device: DeviceId(*device), expires, mac })
    }
}

fn seconds(moment: Timestamp) -> u64 {
    moment.as_micros() / 1_000_000
}

/// The first 8 bytes of a keyed hash in hexadecimal.
fn digits(mac: &Signature) -> [u8; 16] {
    let mut digits = [0; 16];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(mac.hash()) {
        pair[0] = HEXADECIMAL[usize::from(byte >> 4)];
        pair[1] = HEXADECIMAL[usize::from(byte & 15)];
    }
    digits
}

/// Accepts only the spelling that `base64::encode_url` writes.
fn decode(text: &[u8]) -> Option<[u8; LENGTH]> {
    if text.len() != DIGITS {
        return None;
    }
    let mut content = [0; LENGTH];
    let (mut pending, mut count, mut written) = (0_u32, 0, 0);
    for letter in text {
        let digit = memchr::memchr(*letter, base64::URL)?;
        pending = pending << 6 | u32::try_from(digit).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            *content.get_mut(written)? = (pending >> count).to_le_bytes()[0];
            written += 1;
        }
    }
    let is_one_spelling = pending.trailing_zeros() >= count;
    (written == LENGTH && is_one_spelling).then_some(content)
}

// Which cookies are the gateway's own: no application sees them or sets them.

/// The start of the name of the cookie of the dashboard. A browser sends it to every port of the host of the admin listener.
pub const DASHBOARD_COOKIE: &str = "portcullis_session";

/// The cookie in which a browser sends its proof of work.
pub const PROOF_COOKIE: &str = "portcullis_pow";

/// The common beginning of all their names, after the prefixes of browsers.
const COMMON: &str = "portcullis_";

/// Browsers require attributes of cookies with these names (RFC 6265bis).
const NAME_PREFIXES: [&str; 2] = ["__Host-", "__Secure-"];

/// Whether a line of `Cookie` has a cookie of ours. Most lines do not even have its name anywhere.
pub fn has_own(line: &[u8]) -> bool {
    // Its last byte is rarer than its letters, and has no case.
    let ends = |at: usize| at + 1 >= COMMON.len() && begins_with(&line[at + 1 - COMMON.len()..], COMMON);
    memchr_iter(b'_', line).any(ends) && line.split(|byte| *byte == b';').any(is_own)
}

/// Whether some application may read this pair as a cookie of ours: without case, or without quotes and other characters
/// around the name.
pub fn is_own(pair: &[u8]) -> bool {
    let start = pair.iter().position(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').unwrap_or(pair.len());
    let name = NAME_PREFIXES
        .iter()
        .fold(&pair[start..], |name, prefix| if begins_with(name, prefix) { &name[prefix.len()..] } else { name });
    [COOKIE_PREFIX, DASHBOARD_COOKIE, PROOF_COOKIE].iter().any(|own| begins_with(name, own))
}

fn begins_with(text: &[u8], prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

#[cfg(test)]
mod own_cookies_tests {
    use super::*;

    #[test]
    fn cookies_of_ours_are_known_in_every_spelling_of_a_browser() {
        for own in [
            "portcullis_device_1=x",
            " Portcullis_Session_9090 = x",
            "\"portcullis_session\"=x",
            "__Host-portcullis_session=x",
            "__secure-portcullis_session_443=x",
            "portcullis_pow=x",
        ] {
            assert!(is_own(own.as_bytes()) && has_own(format!("a=1;{own}; b=2").as_bytes()), "{own}");
        }
        for other in ["", "my_portcullis_session=x", "a=portcullis_session=x", "__Host-session=x", "portcullis=x"] {
            assert!(!is_own(other.as_bytes()) && !has_own(other.as_bytes()), "{other}");
        }
    }
}

#[cfg(test)]
mod tests;
