//! Checks that a head is one unambiguous request: one target, one host, one framing. An ambiguous head is refused,
//! never repaired.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use http::{Method, Version};

use crate::gateway::fault::BadRequest;
use crate::gateway::snapshot::GatewaySettings;
use crate::listen::Connection;
use crate::listen::tls::TlsInfo;
use crate::rules::request::CanonicalHost;
use crate::wire::head::{Fields, KnownName, RequestHead, Scheme};

/// Refuses a request that is ambiguous, is for another connection, or has too long a body. The host of the head is set as
/// soon as there is exactly one. `tls` is the handshake of the client, if it is known. `length` is the length of the body, as far as it is known.
pub fn admit(
    head: &mut RequestHead,
    connection: &Connection,
    tls: Option<&TlsInfo>,
    settings: &GatewaySettings,
    length: u64,
) -> Result<(), BadRequest> {
    if head.fields.len() > connection.max_headers {
        return Err(BadRequest::TooManyFields);
    }
    if settings.accepts_utf8_targets {
        head.encode_target();
    }
    check(head, connection.local)?;
    check_direction(|| head.host(), tls)?;
    if settings.max_body.is_some_and(|most| length > most) {
        return Err(BadRequest::TooLong);
    }
    Ok(())
}

/// Checks the head of a request, and sets its host. Afterwards the target has only bytes that are allowed in a target, and
/// `Host` is the one host of the request: the authority of an absolute target or of HTTP/2, else the header as it came. The
/// host of an HTTP/1.0 request without one is the address that it came to.
pub fn check(head: &mut RequestHead, local: SocketAddr) -> Result<(), BadRequest> {
    if is_refused(&head.method) {
        return Err(BadRequest::Method);
    }
    check_target(head)?;
    check_lengths(&head.fields, head.version)?;
    let mut expectations = head.fields.get_all(KnownName::EXPECT);
    let expects_more = expectations.any(|value| !value.eq_ignore_ascii_case(b"100-continue"));
    drop(expectations);
    settle_host(head, local)?;
    if expects_more { Err(BadRequest::Expectation) } else { Ok(()) }
}

fn check_lengths(fields: &Fields, version: Version) -> Result<(), BadRequest> {
    if !fields.has(KnownName::TRANSFER_ENCODING) {
        return check_length(fields);
    }
    let encoding = fields.single(KnownName::TRANSFER_ENCODING);
    let is_plain = encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case(b"chunked"));
    if !is_plain || version != Version::HTTP_11 {
        return Err(BadRequest::TransferEncoding);
    }
    if fields.has(KnownName::CONTENT_LENGTH) { Err(BadRequest::ConflictingLengths) } else { Ok(()) }
}

/// Several equal lengths count as one. A length has only digits.
fn check_length(fields: &Fields) -> Result<(), BadRequest> {
    let mut lengths = fields.get_all(KnownName::CONTENT_LENGTH);
    let Some(length) = lengths.next() else { return Ok(()) };
    let is_number = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
    if is_number && lengths.all(|other| other == length) { Ok(()) } else { Err(BadRequest::ConflictingLengths) }
}

/// Compared without case, because some applications read methods so.
fn is_refused(method: &Method) -> bool {
    match *method {
        Method::GET | Method::POST | Method::HEAD | Method::PUT | Method::DELETE => false,
        _ => [Method::CONNECT, Method::TRACE].iter().any(|it| it.as_str().eq_ignore_ascii_case(method.as_str())),
    }
}

/// Checks that a client with a certificate asks for the host that it named in the TLS handshake. A client that named
/// none may only ask for an address, which a handshake never names.
pub fn check_direction<'h>(host: impl FnOnce() -> &'h str, tls: Option<&TlsInfo>) -> Result<(), BadRequest> {
    let Some(TlsInfo { server_name, client_is_certified: true }) = tls else { return Ok(()) };
    let host = CanonicalHost::new(host());
    let is_for_it = match server_name {
        Some(name) => host == CanonicalHost::new(name),
        None => is_address(&host),
    };
    if is_for_it { Ok(()) } else { Err(BadRequest::Misdirected) }
}

fn is_address(host: &CanonicalHost<'_>) -> bool {
    host.as_str().starts_with('[') || host.as_str().parse::<Ipv4Addr>().is_ok()
}

fn check_target(head: &RequestHead) -> Result<(), BadRequest> {
    let (path, query) = head.target();
    // Applications decode bytes above 0x7f differently. All others of a target are visible.
    if path.is_empty() || !path.is_ascii() || !query.is_none_or(str::is_ascii) {
        return Err(BadRequest::Target);
    }
    let is_asterisk = path == "*";
    if is_asterisk && head.method != Method::OPTIONS || !is_asterisk && !path.starts_with('/') {
        return Err(BadRequest::Target);
    }
    if head.scheme() == Some(Scheme::Other) { Err(BadRequest::Scheme) } else { Ok(()) }
}

fn settle_host(head: &mut RequestHead, local: SocketAddr) -> Result<(), BadRequest> {
    let host = head.fields.single(KnownName::HOST);
    if host.is_none() && head.fields.has(KnownName::HOST) {
        return Err(BadRequest::SeveralHosts);
    }
    if host.is_some_and(|host| !is_host(host)) {
        return Err(BadRequest::Host);
    }
    let Some(authority) = head.authority() else {
        match (host, head.version) {
            (Some(_), _) => head.use_host_field(),
            // Health checks of load balancers send such requests.
            (None, Version::HTTP_10) => head.set_host(&local.to_string()),
            (None, _) => return Err(BadRequest::NoHost),
        }
        return Ok(());
    };
    if !is_host(authority.as_bytes()) {
        return Err(BadRequest::Host);
    }
    match host {
        None if head.version == Version::HTTP_11 => return Err(BadRequest::NoHost),
        Some(host) if !is_same_host(host, authority.as_bytes(), head.scheme()) => {
            return Err(BadRequest::HostMismatch);
        }
        _ => {}
    }
    let authority = authority.to_owned();
    head.set_host(&authority);
    Ok(())
}

/// Compares without case. Either side may omit the default port, and the dot at the end of a name.
fn is_same_host(host: &[u8], authority: &[u8], scheme: Option<Scheme>) -> bool {
    let port: &[u8] = if scheme == Some(Scheme::Https) { b":443" } else { b":80" };
    let [host, authority] = [host, authority].map(|name| {
        let name = name.strip_suffix(port).unwrap_or(name);
        name.strip_suffix(b".").unwrap_or(name)
    });
    host.eq_ignore_ascii_case(authority)
}

/// Whether this is a name or an address, with or without a port. User names, lists, spaces and escapes are not allowed.
fn is_host(host: &[u8]) -> bool {
    if let Some(rest) = host.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', rest) else { return false };
        let is_address = std::str::from_utf8(&rest[..end]).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
        return is_address && rest[end + 1..].strip_prefix(b":").map_or(rest.len() == end + 1, is_port);
    }
    let (name, port) = match memchr::memchr(b':', host) {
        Some(colon) => (&host[..colon], &host[colon + 1..]),
        None => (host, &b""[..]),
    };
    is_name(name) && is_port(port)
}

fn is_name(name: &[u8]) -> bool {
    let name = name.strip_suffix(b".").unwrap_or(name);
    // Every request has a host: a table without an early exit costs a third of comparing.
    let fits = name.iter().fold(true, |all, byte| all & IN_NAMES[usize::from(*byte)]);
    fits && name.len() <= MAX_NAME && name.split(|byte| *byte == b'.').all(|label| !label.is_empty())
}

/// The bytes that a name may have.
const IN_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        byte += 1;
    }
    table
};

/// Longer than any name that resolves.
const MAX_NAME: usize = 255;

/// Whether this is a number up to 65535, or empty.
fn is_port(port: &[u8]) -> bool {
    if port.len() > 5 || !port.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let number = port.iter().fold(0, |sum: u32, digit| sum * 10 + u32::from(digit - b'0'));
    u16::try_from(number).is_ok()
}

#[cfg(test)]
mod tests;
