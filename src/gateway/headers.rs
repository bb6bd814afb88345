//! Edits the headers of requests and answers on their way through.

use std::io::Write;
use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::Instant;
use tracing::warn;

use crate::gateway::header_kind::{HOPS, HeaderKind, SignificantHeaders};
use crate::gateway::stages::RequestId;
use crate::rules::client::device::{DeviceOwner, has_own, is_own};
use crate::rules::client::forwarded::last_element;
use crate::rules::client::{ClientIp, DeviceId, Identity, device};
use crate::rules::decision::Policy;
use crate::rules::decision::known_client::DeviceEnrollment;
use crate::rules::request::encoding;
use crate::wire::head::{FieldBlock, Fields, KnownName, Name, NameSet};
use crate::words::base64;
use crate::words::clock::Timestamp;
use crate::words::signing::KeyRing;

/// The gateway writes these headers itself: the application never gets the client's.
const WRITTEN_ANEW: NameSet =
    NameSet::FORWARDING.without(NameSet::of(&[KnownName::FORWARDED, KnownName::X_FORWARDED_PORT]));

/// With one of these an answer may have only part of the page, or none of it. The last one would override the
/// `Accept-Encoding` that is written here.
const MAKING_PARTIAL: [&str; 7] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "accept_encoding"];

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

/// Rewrites the headers of a request for the application, except `Connection` and `Upgrade`. Returns whether the
/// request had a `Content-Length`. `Content-Length`, `Transfer-Encoding` and `Expect` are removed, because the body
/// knows them. `of_peer` gives [`forwarding_of_peer`], for a peer that is no trusted proxy; `on_untrusted` is called for each
/// header that such a peer sent and that is removed for this reason.
pub fn prepare_request<'c>(
    fields: &mut Fields,
    identity: &Identity,
    is_tls: bool,
    of_peer: impl FnOnce() -> &'c FieldBlock,
    request_id: RequestId,
    significant_headers: &SignificantHeaders,
    mut on_untrusted: impl FnMut(Name<'_>),
) -> bool {
    let is_trusted = identity.peer_is_trusted;
    let states_length = fields.has(KnownName::CONTENT_LENGTH);
    let wants_trailers = fields.get_all(KnownName::TE).any(names_trailers);
    let described = is_trusted.then(|| DescribedForwarding::read(fields, identity, is_tls));
    if !is_trusted {
        fields.among(NameSet::FORWARDING).for_each(|known| on_untrusted(known.into()));
        if let Some(named) = significant_headers.client_name()
            && fields.remove(named)
        {
            on_untrusted(named.into());
        }
        fields.remove_any(NameSet::FORWARDING);
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
    strip_request_cookies(fields);
    fields.remove_any(WRITTEN_ANEW);
    match &described {
        Some(described) => described.write(fields, identity),
        None => fields.append_block(of_peer()),
    }
    match described.as_ref().and_then(|described| described.host.as_deref()) {
        Some(host) => fields.append(KnownName::X_FORWARDED_HOST, host),
        None => fields.append_copy(KnownName::X_FORWARDED_HOST, KnownName::HOST),
    }
    fields.append(KnownName::X_REQUEST_ID, request_id.as_bytes());
    states_length
}

/// The fields that describe the client, where the peer of a connection is no trusted proxy and so is the client: whatever it
/// sends, all of its requests get the same ones.
pub fn forwarding_of_peer(peer: ClientIp, is_tls: bool) -> FieldBlock {
    let identity = Identity { peer, peer_is_trusted: false, client: peer };
    let mut fields = Fields::default();
    DescribedForwarding::of_connection(is_tls).write(&mut fields, &identity);
    FieldBlock::from(&fields)
}

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

fn is_same_or_underscore((expected, written): (u8, u8)) -> bool {
    expected == written || (expected == b'-' && written == b'_')
}

/// What is known of the way of a request to this gateway.
#[derive(Debug)]
struct DescribedForwarding {
    /// The list of addresses so far, with a separator behind it.
    addresses: Vec<u8>,
    scheme: &'static str,
    host: Option<Vec<u8>>,
    /// The whole `Forwarded`, with an element for this proxy.
    elements: Option<Vec<u8>>,
}

impl DescribedForwarding {
    /// Nothing but what the connection itself shows.
    fn of_connection(is_tls: bool) -> Self {
        Self { addresses: Vec::new(), scheme: scheme_of_connection(is_tls), host: None, elements: None }
    }

    /// What a trusted proxy has written into its request.
    fn read(fields: &Fields, identity: &Identity, is_tls: bool) -> Self {
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
        Self { addresses, scheme: scheme(fields, identity, is_tls), host: host.map(<[u8]>::to_vec), elements }
    }

    /// Writes all but the host, which the request itself may name.
    fn write(&self, fields: &mut Fields, identity: &Identity) {
        fields.append_with(KnownName::X_FORWARDED_FOR, |text| {
            text.extend_from_slice(&self.addresses);
            write_address(text, identity.peer.address());
        });
        fields.append(KnownName::X_FORWARDED_PROTO, self.scheme.as_bytes());
        if let Some(elements) = &self.elements {
            fields.insert(KnownName::FORWARDED, elements);
        }
        fields.append_with(KnownName::X_REAL_IP, |text| write_address(text, identity.client.address()));
        mark(fields);
    }
}

/// The scheme of the client's connection: of this connection, or of the one that a trusted proxy describes.
pub fn scheme(fields: &Fields, identity: &Identity, is_tls: bool) -> &'static str {
    let described = if identity.peer_is_trusted { forwarded_scheme(fields) } else { None };
    described.unwrap_or(scheme_of_connection(is_tls))
}

fn scheme_of_connection(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

/// The scheme of the client's connection as `X-Forwarded-Proto` has it: `http`, `https`, `ws` or `wss`. Case is nothing, and of
/// a list the last element counts, which the nearest proxy wrote. `None` for anything else.
pub fn forwarded_scheme(fields: &Fields) -> Option<&'static str> {
    let described = last_element(fields, KnownName::X_FORWARDED_PROTO)?;
    ["http", "https", "ws", "wss"].into_iter().find(|scheme| described.eq_ignore_ascii_case(scheme.as_bytes()))
}

/// Rewrites the headers of an answer for the client. `Content-Length` is kept if it describes a body that is not sent.
pub fn prepare_answer(fields: &mut Fields, length: BodyLength, significant_headers: &SignificantHeaders) {
    strip_connection(fields, |name| significant_headers.in_answers(name));
    strip_response_cookies(fields);
    fields.remove_any(match length {
        BodyLength::Sent => HOPS,
        BodyLength::NotSent => HOPS.without(NameSet::of(&[KnownName::CONTENT_LENGTH])),
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

/// All values of a header that are not empty, joined.
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

// The gateway's own cookies, hidden from the application; and the device cookie on the answer that makes a client known.

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

// Finds requests that this gateway has forwarded and that come back to it, which would go round without end.

/// Drawn at each start.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    base64::encode_url(&bytes)
});

/// Between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Marks a request as forwarded by this process. The marks of other gateways stay: a loop may lead through them.
pub(super) fn mark(fields: &mut Fields) {
    fields.append(KnownName::PORTCULLIS_LOOP, MARK.as_bytes());
}

/// Whether this process has forwarded the request before. A client cannot write the mark unless its application shows it, and would
/// then refuse its own requests only.
pub fn has_passed(fields: &Fields) -> bool {
    fields.has(KnownName::PORTCULLIS_LOOP)
        && fields.get_all(KnownName::PORTCULLIS_LOOP).any(|mark| mark == MARK.as_bytes())
}

/// Says at intervals that requests come back.
pub fn log(fields: &Fields, peer: IpAddr) {
    static LOGGED: Mutex<Option<Instant>> = Mutex::new(None);
    let mut logged = LOGGED.lock();
    if logged.is_some_and(|logged| logged.elapsed() < LOG_INTERVAL) {
        return;
    }
    *logged = Some(Instant::now());
    let host = String::from_utf8_lossy(fields.get(KnownName::HOST).unwrap_or_default());
    warn!(
        %host,
        %peer,
        "a request came back to the gateway that has forwarded it, and is answered 508: the upstream of this host leads to the \
         gateway itself"
    );
}

#[cfg(test)]
mod device_tests {
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

#[cfg(test)]
mod tests;
