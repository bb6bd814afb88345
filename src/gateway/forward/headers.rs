//! Edits the headers of requests and answers on their way through.

use std::io::Write;
use std::net::IpAddr;

use http::HeaderMap;
use http::HeaderName;
use smallvec::SmallVec;

use super::device;
use super::header_kind::FORWARDING;
use super::header_kind::HOPS;
use super::header_kind::HeaderKind;
use super::loop_mark;
use super::significant_headers::SignificantHeaders;
use crate::client::Identity;
use crate::client::forwarded::forwarded_scheme;
use crate::client::forwarded::last_element;
use crate::gateway::admit::request_id::RequestId;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::Name;
use crate::head::NameSet;
use crate::request::encoding;
use crate::upstream::HostHeader;

/// Removes the headers that `Connection` names. Returns whether it asks for an upgrade. This is done before the rules
/// read the headers, because a header that the application does not get must not count. Significant headers are kept: a
/// client must not remove them by naming them in `Connection`.
pub fn strip_connection(fields: &mut Fields, is_significant: impl Fn(Name<'_>) -> bool) -> bool {
    let Some(first) = fields.get(KnownName::CONNECTION) else { return false };
    if first == b"keep-alive" && fields.single(KnownName::CONNECTION).is_some() {
        // As nearly all clients and applications write it.
        fields.remove(KnownName::CONNECTION);
        return false;
    }
    let mut asks_for_upgrade = false;
    let mut named: SmallVec<[HeaderName; 4]> = SmallVec::new();
    for value in fields.get_all(KnownName::CONNECTION) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"keep-alive") || option.eq_ignore_ascii_case(b"close") {
                continue;
            }
            if option.eq_ignore_ascii_case(b"upgrade") {
                asks_for_upgrade = true;
            } else if let Ok(name) = HeaderName::from_bytes(option)
                && !is_significant(Name::of(name.as_str()))
            {
                named.push(name);
            }
        }
    }
    fields.remove(KnownName::CONNECTION);
    for name in named {
        fields.remove(Name::of(name.as_str()));
    }
    asks_for_upgrade
}

/// Turns the headers of a request into those that the application gets, except `Connection` and `Upgrade`. Returns
/// whether the request had a `Content-Length`. `Content-Length`, `Transfer-Encoding` and `Expect` are removed, because
/// the body knows them. `on_untrusted` is called for each header that is removed because its peer is no trusted proxy.
pub fn prepare_request(
    fields: &mut Fields,
    identity: &Identity,
    is_tls: bool,
    request_id: RequestId,
    host: &HostHeader,
    significant_headers: &SignificantHeaders,
    mut on_untrusted: impl FnMut(Name<'_>),
) -> bool {
    let is_trusted = identity.peer_is_trusted;
    let states_length = fields.has(KnownName::CONTENT_LENGTH);
    let wants_trailers = fields.get_all(KnownName::TE).any(names_trailers);
    let proto = scheme(fields, identity, is_tls);
    let described = DescribedForwarding::read(fields, identity, is_tls);
    if !is_trusted {
        fields.among(FORWARDING).for_each(|known| on_untrusted(known.into()));
        if let Some(named) = significant_headers.client_name()
            && fields.remove(named)
        {
            on_untrusted(named.into());
        }
        fields.remove_any(FORWARDING);
    }
    fields.remove_any(HOPS);
    fields.retain_unknown(|name| {
        let is_kept = match HeaderKind::of(name) {
            HeaderKind::EndToEnd => {
                !significant_headers.is_lookalike(name) && (is_trusted || !significant_headers.names_the_client(name))
            }
            HeaderKind::Forwarding => is_trusted,
            HeaderKind::HopByHop | HeaderKind::Misleading => false,
        };
        if !is_kept && !is_trusted {
            on_untrusted(name);
        }
        is_kept
    });
    if wants_trailers {
        fields.append(KnownName::TE, b"trailers");
        fields.append(KnownName::CONNECTION, b"te");
    }
    device::strip_request_cookies(fields);
    fields.remove_any(WRITTEN_ANEW);
    fields.append_with(KnownName::X_FORWARDED_FOR, |text| {
        text.extend_from_slice(&described.addresses);
        write_address(text, identity.peer.address());
    });
    fields.append(KnownName::X_FORWARDED_PROTO, proto.as_bytes());
    if let Some(original) = &described.host {
        fields.append(KnownName::X_FORWARDED_HOST, original);
    } else {
        fields.append_copy(KnownName::X_FORWARDED_HOST, KnownName::HOST);
    }
    if let Some(elements) = &described.elements {
        fields.insert(KnownName::FORWARDED, elements);
    }
    fields.append_with(KnownName::X_REAL_IP, |text| write_address(text, identity.client.address()));
    fields.append(KnownName::X_REQUEST_ID, request_id.as_bytes());
    loop_mark::mark(fields);
    if let HostHeader::Fixed(host) = host {
        fields.insert(KnownName::HOST, host.as_bytes());
    }
    states_length
}

/// Of these the application gets what the gateway says.
const WRITTEN_ANEW: NameSet = NameSet::of(&[
    KnownName::X_FORWARDED_FOR,
    KnownName::X_FORWARDED_PROTO,
    KnownName::X_FORWARDED_HOST,
    KnownName::X_REAL_IP,
    KnownName::X_REQUEST_ID,
]);

/// Prepares a request whose answer has an outcome: the answer must be complete and unconditional, and its body must
/// have an encoding that the gateway can decode, if the outcome needs the body.
pub fn prepare_for_outcome(fields: &mut Fields, needs_body: bool) {
    fields.retain(|field| {
        let name = field.name.as_str();
        // Many applications read `If_Match` as `If-Match`.
        let is = |known: &str| name.len() == known.len() && known.bytes().zip(name.bytes()).all(is_same_or_underscore);
        !MAKING_PARTIAL.iter().any(|known| is(known))
    });
    if needs_body && fields.has(KnownName::ACCEPT_ENCODING) {
        let list = joined(fields, KnownName::ACCEPT_ENCODING, b",");
        let name = |element: &&[u8]| {
            encoding::is_known(element.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
        };
        let readable: Vec<_> = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(name).collect();
        let readable = readable.join(&b", "[..]);
        fields.insert(KnownName::ACCEPT_ENCODING, if readable.is_empty() { b"identity" } else { &readable });
    }
}

/// With one of these an answer may have only part of the page, or none of it. The last one would override the
/// `Accept-Encoding` that is written here.
const MAKING_PARTIAL: [&str; 7] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "accept_encoding"];

fn is_same_or_underscore((expected, written): (u8, u8)) -> bool {
    expected == written || (expected == b'-' && written == b'_')
}

/// What a trusted proxy says of the hops before it.
#[derive(Debug, Default)]
struct DescribedForwarding {
    /// The list of addresses so far, with a separator behind it.
    addresses: Vec<u8>,
    host: Option<Vec<u8>>,
    /// The whole `Forwarded`, with an element for this proxy.
    elements: Option<Vec<u8>>,
}

impl DescribedForwarding {
    fn read(fields: &Fields, identity: &Identity, is_tls: bool) -> Self {
        if !identity.peer_is_trusted {
            return Self::default();
        }
        let mut addresses = joined(fields, KnownName::X_FORWARDED_FOR, b", ");
        if !addresses.is_empty() {
            addresses.extend_from_slice(b", ");
        }
        let elements = fields.has(KnownName::FORWARDED).then(|| {
            let mut list = joined(fields, KnownName::FORWARDED, b", ");
            if !list.is_empty() {
                list.extend_from_slice(b", ");
            }
            list.extend_from_slice(b"for=");
            list.extend_from_slice(forwarded_node(identity.peer.address()).as_bytes());
            if is_tls {
                list.extend_from_slice(b";proto=https");
            }
            list
        });
        let host = last_element(fields, KnownName::X_FORWARDED_HOST).filter(|host| is_sane_host(host));
        Self { addresses, host: host.map(<[u8]>::to_vec), elements }
    }
}

/// The scheme of the client's connection: of this connection, or of the one that a trusted proxy describes.
pub fn scheme(fields: &Fields, identity: &Identity, is_tls: bool) -> &'static str {
    let described = if identity.peer_is_trusted { forwarded_scheme(fields) } else { None };
    described.unwrap_or(if is_tls { "https" } else { "http" })
}

/// Turns the headers of an answer into those that the client gets. `Content-Length` is kept if it describes a body that
/// is not sent.
pub fn prepare_answer(fields: &mut Fields, length: BodyLength, significant_headers: &SignificantHeaders) {
    strip_connection(fields, |name| significant_headers.in_answers(name));
    device::strip_response_cookies(fields);
    fields.remove_any(match length {
        BodyLength::Sent => HOPS,
        BodyLength::NotSent => HOPS.without(KnownName::CONTENT_LENGTH),
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
    let removed: Vec<HeaderName> =
        trailers.keys().filter(|name| !HeaderKind::may_trail(name.as_str())).cloned().collect();
    for name in removed {
        trailers.remove(name);
    }
}

fn names_trailers(te: &[u8]) -> bool {
    te.split(|byte| *byte == b',').any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

fn is_sane_host(host: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(byte);
    !host.is_empty() && host.len() <= 261 && host.iter().all(fits)
}

/// All values of a header as one, without those that are empty.
fn joined(fields: &Fields, name: KnownName, separator: &[u8]) -> Vec<u8> {
    let values = fields.get_all(name).map(<[u8]>::trim_ascii).filter(|value| !value.is_empty());
    values.collect::<SmallVec<[&[u8]; 4]>>().join(separator)
}

fn write_address(text: &mut Vec<u8>, address: IpAddr) {
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
            text.extend_from_slice(&digits[..length - 1]);
        }
        // Writing to memory cannot fail.
        IpAddr::V6(address) => drop(write!(text, "{address}")),
    }
}

fn forwarded_node(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    }
}

#[cfg(test)]
mod tests;
