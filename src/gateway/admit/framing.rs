//! Checks that a head is one unambiguous request: one target, one host, one framing. An ambiguous head is refused,
//! never repaired.

use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;

use http::HeaderMap;
use http::HeaderValue;
use http::Method;
use http::StatusCode;
use http::Uri;
use http::Version;
use http::header::CONTENT_LENGTH;
use http::header::EXPECT;
use http::header::HOST;
use http::header::TRANSFER_ENCODING;
use http::request::Parts;
use http::uri::Scheme;

use crate::gateway::settings::GatewaySettings;
use crate::listen::Connection;
use crate::listen::tls::TlsInfo;
use crate::request::CanonicalHost;

/// Why a request is refused before any rule is applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadRequest {
    #[error("this method is not allowed")]
    Method,
    #[error("the request target is malformed")]
    Target,
    #[error("the scheme of the request target is neither http nor https")]
    Scheme,
    #[error("the Host header is missing")]
    NoHost,
    #[error("there is more than one Host header")]
    SeveralHosts,
    #[error("the Host header is malformed")]
    Host,
    #[error("the Host header differs from the request target")]
    HostMismatch,
    #[error("the Host header differs from the name in the TLS handshake")]
    Misdirected,
    #[error("the Transfer-Encoding is not exactly `chunked`")]
    TransferEncoding,
    #[error("the length of the body is ambiguous")]
    ConflictingLengths,
    #[error("the Expect header is not 100-continue")]
    Expectation,
    #[error("there are too many headers")]
    TooManyFields,
    #[error("the body is too long")]
    TooLong,
    #[error("the body is malformed")]
    Body,
    #[error("the body took too long to arrive")]
    Slow,
    #[error("too many bodies are being read on this connection")]
    NoRoom,
}

impl BadRequest {
    pub fn status(self) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::TooManyFields => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// Refuses a request that is ambiguous, is for another connection, or has too long a body. `host` is set as soon as
/// there is exactly one. `length` is the length of the body, as far as it is known.
pub fn admit(
    parts: &mut Parts,
    host: &mut Option<HeaderValue>,
    connection: &Connection,
    settings: &GatewaySettings,
    length: u64,
) -> Result<(), BadRequest> {
    if parts.headers.len() > connection.max_headers {
        return Err(BadRequest::TooManyFields);
    }
    let host = host.insert(check(parts, connection.local)?);
    check_direction(host, connection.tls_info())?;
    if settings.max_body.is_some_and(|most| length > most) {
        return Err(BadRequest::TooLong);
    }
    Ok(())
}

/// Checks the head of a request, and returns its host. Afterwards the target has only bytes that are allowed in a
/// target, and `Host` is the one host of the request: the authority of an absolute target or of HTTP/2, else the header
/// as it came. The host of an HTTP/1.0 request without one is the address that it came to.
pub fn check(parts: &mut Parts, local: SocketAddr) -> Result<HeaderValue, BadRequest> {
    if is_refused(&parts.method) {
        return Err(BadRequest::Method);
    }
    check_target(parts)?;
    let framing = FramingHeaders::of(&parts.headers);
    framing.check_lengths(parts.version)?;
    let expects_more = framing.expects_more;
    let host = framing.host()?.cloned();
    let host = settle_host(parts, host, local)?;
    if expects_more { Err(BadRequest::Expectation) } else { Ok(host) }
}

/// The headers that decide the host and the end of a request, collected in one pass: single lookups cost three times as
/// much.
#[derive(Debug, Default)]
struct FramingHeaders<'h> {
    host: Option<&'h HeaderValue>,
    hosts: usize,
    encoding: Option<&'h HeaderValue>,
    encodings: usize,
    length: Option<&'h HeaderValue>,
    has_different_lengths: bool,
    /// `Expect` is something other than 100-continue.
    expects_more: bool,
}

impl<'h> FramingHeaders<'h> {
    fn of(headers: &'h HeaderMap) -> Self {
        let mut framing = Self::default();
        for (name, value) in headers {
            match *name {
                HOST => {
                    framing.host = Some(value);
                    framing.hosts += 1;
                }
                TRANSFER_ENCODING => {
                    framing.encoding = Some(value);
                    framing.encodings += 1;
                }
                CONTENT_LENGTH => {
                    framing.has_different_lengths |= framing.length.replace(value).is_some_and(|other| other != value);
                }
                EXPECT => framing.expects_more |= !value.as_bytes().eq_ignore_ascii_case(b"100-continue"),
                _ => {}
            }
        }
        framing
    }

    fn check_lengths(&self, version: Version) -> Result<(), BadRequest> {
        let Some(encoding) = self.encoding else { return self.check_length() };
        let is_plain = self.encodings == 1 && encoding.as_bytes().eq_ignore_ascii_case(b"chunked");
        if !is_plain || version != Version::HTTP_11 {
            return Err(BadRequest::TransferEncoding);
        }
        if self.length.is_some() { Err(BadRequest::ConflictingLengths) } else { Ok(()) }
    }

    /// Several equal lengths count as one. A length has only digits.
    fn check_length(&self) -> Result<(), BadRequest> {
        let Some(length) = self.length else { return Ok(()) };
        let is_number = !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit);
        if is_number && !self.has_different_lengths { Ok(()) } else { Err(BadRequest::ConflictingLengths) }
    }

    /// The `Host` header, if there is one.
    fn host(&self) -> Result<Option<&'h HeaderValue>, BadRequest> {
        if self.hosts > 1 { Err(BadRequest::SeveralHosts) } else { Ok(self.host) }
    }
}

/// Compared without case, because some applications read methods so.
fn is_refused(method: &Method) -> bool {
    [Method::CONNECT, Method::TRACE].iter().any(|refused| refused.as_str().eq_ignore_ascii_case(method.as_str()))
}

/// Checks that a client with a certificate asks for the host that it named in the TLS handshake. A client that named
/// none may only ask for an address, which a handshake never names.
pub fn check_direction(host: &HeaderValue, tls: Option<&TlsInfo>) -> Result<(), BadRequest> {
    let Some(TlsInfo { server_name, client_is_certified: true }) = tls else { return Ok(()) };
    let host = host.to_str().unwrap_or_default();
    let is_for_it = match server_name {
        Some(name) => CanonicalHost::new(host) == CanonicalHost::new(name),
        None => is_address(&CanonicalHost::new(host)),
    };
    if is_for_it { Ok(()) } else { Err(BadRequest::Misdirected) }
}

fn is_address(host: &CanonicalHost<'_>) -> bool {
    host.as_str().starts_with('[') || host.as_str().parse::<Ipv4Addr>().is_ok()
}

fn check_target(parts: &Parts) -> Result<(), BadRequest> {
    let Some(target) = parts.uri.path_and_query() else { return Err(BadRequest::Target) };
    // http::Uri allows bytes above 0x7f, which applications decode differently.
    if !target.as_str().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(BadRequest::Target);
    }
    let is_asterisk = target.path() == "*";
    if is_asterisk && parts.method != Method::OPTIONS || !is_asterisk && !target.path().starts_with('/') {
        return Err(BadRequest::Target);
    }
    match parts.uri.scheme() {
        Some(scheme) if *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS => Err(BadRequest::Scheme),
        // `example.com:80` is the target of a CONNECT.
        None if parts.uri.authority().is_some() && parts.version < Version::HTTP_2 => Err(BadRequest::Target),
        _ => Ok(()),
    }
}

fn settle_host(parts: &mut Parts, host: Option<HeaderValue>, local: SocketAddr) -> Result<HeaderValue, BadRequest> {
    if host.as_ref().is_some_and(|host| !is_host(host.as_bytes())) {
        return Err(BadRequest::Host);
    }
    let Some(authority) = parts.uri.authority() else {
        return match (host, parts.version) {
            (Some(host), _) => Ok(host),
            // Health checks of load balancers send such requests.
            (None, Version::HTTP_10) => insert_host(&mut parts.headers, &local.to_string()),
            (None, _) => Err(BadRequest::NoHost),
        };
    };
    if !is_host(authority.as_str().as_bytes()) {
        return Err(BadRequest::Host);
    }
    match host {
        None if parts.version < Version::HTTP_2 && parts.version > Version::HTTP_10 => return Err(BadRequest::NoHost),
        Some(host) if !is_same_host(host.as_bytes(), authority.as_str().as_bytes(), &parts.uri) => {
            return Err(BadRequest::HostMismatch);
        }
        _ => {}
    }
    let authority = authority.clone();
    insert_host(&mut parts.headers, authority.as_str())
}

fn insert_host(headers: &mut HeaderMap, host: &str) -> Result<HeaderValue, BadRequest> {
    let value = HeaderValue::from_str(host).map_err(|_| BadRequest::Host)?;
    headers.insert(HOST, value.clone());
    Ok(value)
}

/// Compares without case. Either side may omit the default port.
fn is_same_host(host: &[u8], authority: &[u8], target: &Uri) -> bool {
    let port: &[u8] = if target.scheme() == Some(&Scheme::HTTPS) { b":443" } else { b":80" };
    let bare = |name: &'_ [u8]| name.strip_suffix(port).map_or(name.len(), <[u8]>::len);
    host[..bare(host)].eq_ignore_ascii_case(&authority[..bare(authority)])
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
