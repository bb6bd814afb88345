//! Edits the headers of requests and answers on their way through.

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
use super::header_kind::HeaderKind;
use super::header_kind::is_hop;
use super::significant_headers::SignificantHeaders;
use crate::client::Identity;
use crate::gateway::admit::request_id::RequestId;
use crate::gateway::admit::request_id::X_REQUEST_ID;
use crate::request::encoding;
use crate::upstream::HostHeader;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Removes the headers that `Connection` names. Returns whether it asks for an upgrade. This is done before the rules
/// read the headers, because a header that the application does not get must not count. Significant headers are kept: a
/// client must not remove them by naming them in `Connection`.
pub fn strip_connection(headers: &mut HeaderMap, is_significant: impl Fn(&HeaderName) -> bool) -> bool {
    // One pass costs less than looking up a header that is seldom there.
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
            } else if !is_significant(&name) {
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

/// Turns the headers of a request into those that the application gets, except `Connection` and `Upgrade`. Returns
/// whether the request had a `Content-Length`. `Content-Length`, `Transfer-Encoding` and `Expect` are removed, because
/// the body knows them. `on_untrusted` is called for each header that is removed because its peer is no trusted proxy.
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
            significant_headers.is_lookalike(name)
                || (!identity.peer_is_trusted && significant_headers.names_the_client(name))
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

/// Prepares a request whose answer has an outcome: the answer must be complete and unconditional, and its body must
/// have an encoding that the gateway can decode, if the outcome needs the body.
pub fn prepare_for_outcome(headers: &mut HeaderMap, needs_body: bool) {
    remove_where(headers, |name| {
        let name = name.as_str();
        // Many applications read `If_Match` as `If-Match`.
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

/// With one of these an answer may have only part of the page, or none of it. The last one would override the
/// `Accept-Encoding` that is written here.
const MAKING_PARTIAL: [&str; 7] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "accept_encoding"];

fn is_same_or_underscore((expected, written): (u8, u8)) -> bool {
    expected == written || (expected == b'-' && written == b'_')
}

/// The forwarding headers for the next hop.
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

/// The scheme of the client's connection: of this connection, or of the one that a trusted proxy describes.
pub fn scheme(headers: &HeaderMap, identity: &Identity, is_tls: bool) -> &'static str {
    let proto = if identity.peer_is_trusted { single(headers, &X_FORWARDED_PROTO) } else { None };
    match proto.map(HeaderValue::as_bytes) {
        Some(b"https") => "https",
        Some(b"http") => "http",
        _ if is_tls => "https",
        _ => "http",
    }
}

/// Copies a head out of the buffer that it was read into, which is many times as large.
pub fn copy(parts: &mut Parts) {
    for value in parts.headers.values_mut() {
        *value = copied(value);
    }
    if let Ok(copied) = parts.uri.to_string().parse() {
        parts.uri = copied;
    }
}

/// A copy of a value in its own memory.
pub fn copied(value: &HeaderValue) -> HeaderValue {
    let Ok(mut copied) = HeaderValue::from_bytes(value.as_bytes()) else { return value.clone() };
    copied.set_sensitive(value.is_sensitive());
    copied
}

/// Turns the headers of an answer into those that the client gets. `Content-Length` is kept if it describes a body that
/// is not sent.
pub fn prepare_answer(headers: &mut HeaderMap, length: BodyLength, significant_headers: &SignificantHeaders) {
    // Answers have few headers: one pass costs less than looking up headers that may not be there.
    if headers.keys().any(|name| matches!(*name, CONNECTION | SET_COOKIE)) {
        strip_connection(headers, |name| significant_headers.in_answers(name));
        device::strip_response_cookies(headers);
    }
    remove_where(headers, |name| match *name {
        CONTENT_LENGTH => length == BodyLength::Sent,
        _ => is_hop(name.as_str()),
    });
}

/// Whether the body that `Content-Length` describes is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyLength {
    /// The body follows and knows its length.
    Sent,
    /// No body follows; this is the length that it would have.
    NotSent,
}

/// Removes headers that may not be trailers.
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

/// All values of a header as one.
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
        // Written for every request: the general formatter costs ten times as much.
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
                // The dot is there already.
                length += 1;
            }
            text.0.extend_from_slice(&digits[..length - 1]);
        }
        IpAddr::V6(address) => {
            // Writing to this text cannot fail.
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

/// Text on the stack, large enough for any address.
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
