//! Builds the head of a request from its HTTP/2 fields (RFC 9113, section 8), and refuses what HTTP/1.1 cannot carry.

use http::{Method, StatusCode, Version};

use crate::listen::RefusedHead;
use crate::wire::head;
use crate::wire::head::{Fields, KnownName, RequestHead, Span, Target};
use crate::wire::http2::OF_CONNECTIONS;
use crate::wire::http2::hpack::{Field, Name};

/// A head that was read to its end.
#[derive(Debug)]
pub(super) enum ParsedHead {
    /// On the heap, because it is moved several times before it is used.
    Request(Box<Http2RequestHead>),
    /// Answered without calling the handler.
    Refused(Box<RefusedHead>),
}

/// A request without its body.
#[derive(Debug)]
pub(super) struct Http2RequestHead {
    pub(super) head: RequestHead,
    /// The length of its body, where it is stated.
    pub(super) length: Option<u64>,
    /// It was an extended CONNECT (RFC 8441), and was made the GET that HTTP/1.1 would have for it.
    pub(super) asks_for_tunnel: bool,
    /// The size of the head, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts it.
    pub(super) size: usize,
}

/// The fields of a head or of trailers. Fields beyond the limit are not kept.
#[derive(Debug)]
pub(super) struct HeadFields {
    max_size: usize,
    size: usize,
    pseudo: PseudoHeaders,
    plain: Fields,
    /// Clients may send the cookie in several fields, which are joined (RFC 9113, section 8.2.3).
    cookie: Option<Vec<u8>>,
    is_malformed: bool,
    /// A field was too long to be read.
    has_unread: bool,
}

#[derive(Debug, Default)]
struct PseudoHeaders {
    /// The values, one behind the other.
    text: Vec<u8>,
    method: Option<Span>,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Option<Span>,
    protocol: Option<Span>,
}

/// The pseudo-headers, parsed.
struct RequestLine {
    method: Method,
    target: Target,
    protocol: Option<TunnelProtocol>,
}

/// The protocol that an extended CONNECT asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TunnelProtocol {
    WebSocket,
    Unknown,
}

/// The head is not a valid request.
struct MalformedHead;

impl HeadFields {
    /// `max_size`: in bytes, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts them.
    pub(super) fn new(max_size: usize) -> Self {
        Self {
            max_size,
            size: 0,
            pseudo: PseudoHeaders::default(),
            plain: Fields::default(),
            cookie: None,
            is_malformed: false,
            has_unread: false,
        }
    }

    /// Adds a field, and remembers whether it is malformed.
    pub(super) fn add(&mut self, field: Field<'_>) {
        self.size = self.size.saturating_add(field.size);
        let Some(value) = field.value else { return self.is_malformed = true };
        let text = &mut self.pseudo.text;
        let pseudo = match field.name {
            Name::Field(name) => return self.add_field(name, value),
            Name::Invalid(_) | Name::Status => return self.is_malformed = true,
            Name::Method => &mut self.pseudo.method,
            Name::Scheme => &mut self.pseudo.scheme,
            Name::Authority => &mut self.pseudo.authority,
            Name::Path => &mut self.pseudo.path,
            Name::Protocol => &mut self.pseudo.protocol,
        };
        // Each pseudo-header may stand once, before all other fields.
        self.is_malformed |= pseudo.is_some() || !self.plain.is_empty() || self.cookie.is_some();
        if self.size <= self.max_size {
            let start = text.len();
            text.extend_from_slice(value);
            *pseudo = Some(Span::new(start, text.len()));
        }
    }

    /// Counts fields of `bytes` bytes that were too long to be read.
    pub(super) fn add_unread(&mut self, bytes: usize) {
        self.size = self.size.saturating_add(bytes);
        self.has_unread |= bytes > 0;
    }

    fn add_field(&mut self, name: head::Name<'_>, value: &[u8]) {
        self.is_malformed |= match name {
            head::Name::Known(KnownName::TE) => value != b"trailers",
            head::Name::Known(known) => OF_CONNECTIONS.has(known),
            head::Name::Other(_) => false,
        };
        if self.is_too_long() {
            return;
        }
        if name != KnownName::COOKIE.into() {
            return self.plain.append(name, value);
        }
        match &mut self.cookie {
            None => self.cookie = Some(value.to_vec()),
            Some(cookie) => {
                cookie.extend_from_slice(b"; ");
                cookie.extend_from_slice(value);
            }
        }
    }

    fn is_too_long(&self) -> bool {
        self.has_unread || self.size > self.max_size
    }

    /// Whether the head is too long to be an honest mistake.
    pub(super) fn is_abuse(&self) -> bool {
        self.size > self.max_size.saturating_mul(ABUSE)
    }

    /// The head, once all fields are added. `ends`: there is no body.
    pub(super) fn into_head(mut self, ends: bool) -> ParsedHead {
        let line = if self.is_malformed { Err(MalformedHead) } else { self.pseudo.parse(&mut self.plain) };
        match line.and_then(|line| Ok((self.length(ends, line.protocol)?, line))) {
            Ok((_, RequestLine { protocol: Some(TunnelProtocol::Unknown), .. })) => {
                self.refused(StatusCode::NOT_IMPLEMENTED)
            }
            Ok((length, RequestLine { method, target, protocol })) if !self.is_too_long() => {
                let asks_for_tunnel = protocol.is_some();
                if asks_for_tunnel {
                    self.plain.insert(KnownName::CONNECTION, b"upgrade");
                    self.plain.insert(KnownName::UPGRADE, b"websocket");
                }
                if let Some(cookie) = self.cookie {
                    self.plain.append(KnownName::COOKIE, &cookie);
                }
                let head = RequestHead::new(method, target, Version::HTTP_2, self.plain);
                ParsedHead::Request(Box::new(Http2RequestHead { head, length, asks_for_tunnel, size: self.size }))
            }
            Err(MalformedHead) if self.is_malformed || !self.is_too_long() => self.refused(StatusCode::BAD_REQUEST),
            Ok(_) | Err(MalformedHead) => self.refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        }
    }

    /// The fields as trailers; `None`: they are not valid trailers.
    pub(super) fn into_trailers(self) -> Option<Fields> {
        let is_valid = !self.is_malformed && self.pseudo.is_empty() && !self.is_too_long();
        is_valid.then_some(self.plain)
    }

    /// The refusal, with as much of the request as could be read.
    fn refused(self, status: StatusCode) -> ParsedHead {
        let text = |value: &[u8]| str::from_utf8(value).ok().filter(|text| text.is_ascii()).map(str::to_owned);
        let path = self.pseudo.value(self.pseudo.path).and_then(text);
        let path = path.filter(|path| path == "*" || path.starts_with('/'));
        let target = path.and_then(|path| RequestHead::to(Method::GET, &path).ok());
        ParsedHead::Refused(Box::new(RefusedHead {
            status,
            method: self.pseudo.value(self.pseudo.method).and_then(|method| Method::from_bytes(method).ok()),
            path: target.as_ref().map(|target| target.path().to_owned()),
            query: target.as_ref().and_then(|target| target.query().map(str::to_owned)),
            host: self.pseudo.value(self.pseudo.authority).and_then(text),
            fields: self.plain,
        }))
    }

    /// The content length, which may be repeated with the same value. A request for a tunnel may have none.
    fn length(&self, ends: bool, protocol: Option<TunnelProtocol>) -> Result<Option<u64>, MalformedHead> {
        let mut lengths = self.plain.get_all(KnownName::CONTENT_LENGTH);
        let Some(first) = lengths.next() else { return Ok(None) };
        if protocol.is_some() {
            return Err(MalformedHead);
        }
        let digits = str::from_utf8(first).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or(MalformedHead)?;
        let are_same = lengths.all(|other| other == first);
        if are_same && (!ends || length == 0) { Ok(Some(length)) } else { Err(MalformedHead) }
    }
}

impl PseudoHeaders {
    fn is_empty(&self) -> bool {
        let all = [&self.method, &self.scheme, &self.authority, &self.path, &self.protocol];
        all.iter().all(|one| one.is_none())
    }

    fn value(&self, pseudo: Option<Span>) -> Option<&[u8]> {
        pseudo.map(|span| &self.text[span.range()])
    }

    /// The text of the target is kept beside the fields.
    fn parse(&self, fields: &mut Fields) -> Result<RequestLine, MalformedHead> {
        let method = self.value(self.method).ok_or(MalformedHead)?;
        let mut method = Method::from_bytes(method).map_err(|_| MalformedHead)?;
        let protocol = self.value(self.protocol).map(TunnelProtocol::of);
        let authority = self.value(self.authority);
        if protocol.is_some() {
            if method != Method::CONNECT {
                return Err(MalformedHead);
            }
            // Rules and applications see a GET.
            method = Method::GET;
        }
        let target = if method == Method::CONNECT {
            if self.scheme.is_some() || self.path.is_some() {
                return Err(MalformedHead);
            }
            Target::of_authority(fields, authority.ok_or(MalformedHead)?)
        } else {
            let scheme = self.value(self.scheme).ok_or(MalformedHead)?;
            let path = self.value(self.path).ok_or(MalformedHead)?;
            let path = str::from_utf8(path).map_err(|_| MalformedHead)?;
            Target::from_parts(fields, scheme, authority, path)
        };
        Ok(RequestLine { method, target: target.map_err(|_| MalformedHead)?, protocol })
    }
}

impl TunnelProtocol {
    fn of(value: &[u8]) -> Self {
        if value.eq_ignore_ascii_case(b"websocket") { Self::WebSocket } else { Self::Unknown }
    }
}

/// A head this many times longer than allowed is an attack.
pub(super) const ABUSE: usize = 4;
