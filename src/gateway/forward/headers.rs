//! Fields edited in place on their way to an application and back.

use std::fmt::Write;
use std::net::IpAddr;

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::FORWARDED;
use http::header::HOST;
use http::header::SET_COOKIE;
use http::header::TE;
use http::header::UPGRADE;
use http::request::Parts;
use smallvec::SmallVec;

use super::device;
use super::header_names::HeaderKind;
use super::header_names::SignificantHeaders;
use super::header_names::is_hop;
use crate::client::Identity;
use crate::gateway::admit::request_id::RequestId;
use crate::gateway::admit::request_id::X_REQUEST_ID;
use crate::request::encoding;
use crate::upstream::HostHeader;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Removes what a message names in `Connection`, and says whether it asks for an upgrade. Done before the rules look:
/// what the application does not get must not count. What they look at is kept: nobody takes away what says who asks,
/// what for, or what it means, by calling it a matter between neighbours.
pub fn strip_connection(headers: &mut HeaderMap, is_looked_at: impl Fn(&HeaderName) -> bool) -> bool {
    // A look at each costs less than looking up what is seldom there.
    if !headers.keys().any(|name| *name == CONNECTION) {
        return false;
    }
    let mut asks_for_upgrade = false;
    let mut named: SmallVec<[HeaderName; 4]> = SmallVec::new();
    for value in headers.get_all(CONNECTION) {
        for option in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"keep-alive") || option.eq_ignore_ascii_case(b"close") {
                continue;
            }
            let Ok(name) = HeaderName::from_bytes(option) else { continue };
            if name == UPGRADE {
                asks_for_upgrade = true;
            } else if !is_looked_at(&name) {
                named.push(name);
            }
        }
    }
    headers.remove(CONNECTION);
    for name in named {
        headers.remove(name);
    }
    asks_for_upgrade
}

/// Makes the fields of a request those that the application is to see, all but `Connection` and `Upgrade`. Says whether
/// it stated a length.
/// Content-Length, Transfer-Encoding and Expect are taken away: the body knows what they are. `on_untrusted` is told of each
/// field that was taken away from a peer that is no trusted proxy.
pub fn prepare_request(
    headers: &mut HeaderMap,
    identity: &Identity,
    is_tls: bool,
    request_id: RequestId,
    host: &HostHeader,
    significant_headers: &SignificantHeaders,
    on_untrusted: impl FnMut(&HeaderName),
) -> bool {
    let peer = address_value(identity.peer.address());
    let client = if identity.client == identity.peer { peer.clone() } else { address_value(identity.client.address()) };
    let forwarded = ForwardingFields::read(headers, identity, is_tls, peer);
    let removed = names_where(headers, |name| match HeaderKind::of(name) {
        HeaderKind::EndToEnd => {
            significant_headers.is_mistaken_for_one(name)
                || (!identity.peer_is_trusted && significant_headers.says_who_asks(name))
        }
        HeaderKind::Forwarding => !identity.peer_is_trusted,
        HeaderKind::HopByHop | HeaderKind::Misleading => true,
    });
    let states_length = removed.contains(&CONTENT_LENGTH);
    let wants_trailers = removed.contains(&TE) && headers.get_all(TE).iter().any(names_trailers);
    remove(headers, &removed);
    if !identity.peer_is_trusted {
        removed.iter().for_each(on_untrusted);
    }
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
    }
    device::strip_request_cookies(headers);
    headers.insert(X_FORWARDED_FOR, forwarded.addresses);
    headers.insert(X_FORWARDED_PROTO, forwarded.proto);
    if let Some(original) = forwarded.host.or_else(|| headers.get(HOST).cloned()) {
        headers.insert(X_FORWARDED_HOST, original);
    }
    if let Some(elements) = forwarded.elements {
        headers.insert(FORWARDED, elements);
    }
    headers.insert(X_REAL_IP, client);
    headers.insert(X_REQUEST_ID, request_id.to_header());
    if let HostHeader::Fixed(host) = host {
        headers.insert(HOST, host.clone());
    }
    states_length
}

/// Makes a request one whose answer says what it means: whole, unconditional, and in an encoding that can be read where
/// its body is.
pub fn prepare_for_outcome(headers: &mut HeaderMap, needs_body: bool) {
    remove_where(headers, |name| {
        let name = name.as_str();
        // Many applications cannot tell `If_Match` from `If-Match`.
        let is = |known: &str| name.len() == known.len() && known.bytes().zip(name.bytes()).all(is_same_or_underscore);
        MAKING_PARTIAL.iter().any(|known| is(known))
    });
    if needs_body && headers.contains_key(ACCEPT_ENCODING) {
        let list = joined(headers, &ACCEPT_ENCODING, b",");
        let name = |element: &&[u8]| {
            encoding::is_known(element.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
        };
        let readable: Vec<_> = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(name).collect();
        let readable = HeaderValue::try_from(readable.join(&b", "[..])).ok().filter(|value| !value.is_empty());
        headers.insert(ACCEPT_ENCODING, readable.unwrap_or(HeaderValue::from_static("identity")));
    }
}

/// With one of these an answer may be less than the page, or nothing of it; the last one would undo what is written anew.
const MAKING_PARTIAL: [&str; 7] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "accept_encoding"];

fn is_same_or_underscore((expected, written): (u8, u8)) -> bool {
    expected == written || (expected == b'-' && written == b'_')
}

/// What the next hop is told about those before.
#[derive(Debug)]
struct ForwardingFields {
    addresses: HeaderValue,
    proto: HeaderValue,
    host: Option<HeaderValue>,
    elements: Option<HeaderValue>,
}

impl ForwardingFields {
    fn read(headers: &HeaderMap, identity: &Identity, is_tls: bool, peer: HeaderValue) -> Self {
        let proto = HeaderValue::from_static(scheme(headers, identity, is_tls));
        let mut anew = Self { addresses: peer, proto, host: None, elements: None };
        if !identity.peer_is_trusted {
            return anew;
        }
        if headers.contains_key(X_FORWARDED_FOR) {
            let mut list = joined(headers, &X_FORWARDED_FOR, b", ");
            list.extend_from_slice(b", ");
            list.extend_from_slice(anew.addresses.as_bytes());
            anew.addresses = HeaderValue::try_from(list).unwrap_or(anew.addresses);
        }
        if headers.contains_key(FORWARDED) {
            let mut list = joined(headers, &FORWARDED, b", ");
            list.extend_from_slice(b", for=");
            list.extend_from_slice(forwarded_node(identity.peer.address()).as_bytes());
            if is_tls {
                list.extend_from_slice(b";proto=https");
            }
            anew.elements = HeaderValue::try_from(list).ok();
        }
        anew.host = single(headers, &X_FORWARDED_HOST).filter(|host| is_sane_host(host.as_bytes())).cloned();
        anew
    }
}

/// How the client's own connection is spoken over: this one, or what a trusted proxy says of its own.
pub fn scheme(headers: &HeaderMap, identity: &Identity, is_tls: bool) -> &'static str {
    let said = if identity.peer_is_trusted { single(headers, &X_FORWARDED_PROTO) } else { None };
    match said.map(HeaderValue::as_bytes) {
        Some(b"https") => "https",
        Some(b"http") => "http",
        _ if is_tls => "https",
        _ => "http",
    }
}

/// Copies what a head says out of the buffer it was read into, which is many times as large.
pub fn copy(parts: &mut Parts) {
    for value in parts.headers.values_mut() {
        *value = copied(value);
    }
    if let Ok(copied) = parts.uri.to_string().parse() {
        parts.uri = copied;
    }
}

/// The same value in memory of its own.
pub fn copied(value: &HeaderValue) -> HeaderValue {
    let Ok(mut copied) = HeaderValue::from_bytes(value.as_bytes()) else { return value.clone() };
    copied.set_sensitive(value.is_sensitive());
    copied
}

/// Makes the fields of an answer those that the client is to see. `Content-Length` is kept where it describes a body
/// that is not sent.
pub fn prepare_answer(headers: &mut HeaderMap, length: BodyLength, significant_headers: &SignificantHeaders) {
    // Answers have few fields: looking at each costs less than looking up those that may not be there.
    if headers.keys().any(|name| matches!(*name, CONNECTION | SET_COOKIE)) {
        strip_connection(headers, |name| significant_headers.in_answers(name));
        device::strip_response_cookies(headers);
    }
    remove_where(headers, |name| match *name {
        CONTENT_LENGTH => length == BodyLength::Sent,
        _ => is_hop(name.as_str()),
    });
}

/// What `Content-Length` means in an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyLength {
    /// The body follows, and knows its length.
    Sent,
    /// No body follows: this is the length it would have.
    NotSent,
}

/// Takes away what may not stand after a body.
pub fn filter_trailers(trailers: &mut HeaderMap) {
    remove_where(trailers, |name| !HeaderKind::may_trail(name));
}

fn remove_where(headers: &mut HeaderMap, is_removed: impl Fn(&HeaderName) -> bool) {
    let removed = names_where(headers, is_removed);
    remove(headers, &removed);
}

fn names_where(headers: &HeaderMap, fits: impl Fn(&HeaderName) -> bool) -> Names {
    headers.keys().filter(|name| fits(name)).cloned().collect()
}

fn remove(headers: &mut HeaderMap, names: &Names) {
    for name in names {
        headers.remove(name);
    }
}

type Names = SmallVec<[HeaderName; 8]>;

fn names_trailers(te: &HeaderValue) -> bool {
    te.as_bytes().split(|byte| *byte == b',').any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

fn is_sane_host(host: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(byte);
    !host.is_empty() && host.len() <= 261 && host.iter().all(fits)
}

/// All values of a field as one.
fn joined(headers: &HeaderMap, name: &HeaderName, separator: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    for value in headers.get_all(name) {
        if !line.is_empty() {
            line.extend_from_slice(separator);
        }
        line.extend_from_slice(value.as_bytes());
    }
    line
}

fn address_value(address: IpAddr) -> HeaderValue {
    let mut text = AddressText::default();
    match address {
        // Four small numbers, written for every request: the general formatter costs ten times as much.
        IpAddr::V4(address) => {
            let mut digits = [b'.'; 16];
            let mut length = 0;
            for octet in address.octets() {
                for unit in [100, 10, 1] {
                    if octet >= unit || unit == 1 {
                        digits[length] = b'0' + octet / unit % 10;
                        length += 1;
                    }
                }
                // The point that stands there already.
                length += 1;
            }
            text.0.extend_from_slice(&digits[..length - 1]);
        }
        IpAddr::V6(address) => {
            // Writing an address to text of its length cannot fail.
            let _ = write!(text, "{address}");
        }
    }
    HeaderValue::from_bytes(&text.0).expect("addresses are visible characters")
}

fn forwarded_node(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    }
}

/// Text on the stack, as long as an address may be.
#[derive(Default)]
struct AddressText(SmallVec<[u8; 48]>);

impl Write for AddressText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
