//! The head of a request over HTTP/2, from its fields: RFC 9113, section 8, and nothing that HTTP/1.1 cannot carry.

use bytes::Bytes;
use bytes::BytesMut;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::StatusCode;
use http::Uri;
use http::Version;
use http::header::CONNECTION;
use http::header::CONTENT_LENGTH;
use http::header::COOKIE;
use http::header::TE;
use http::header::TRANSFER_ENCODING;
use http::header::UPGRADE;
use http::uri;
use http::uri::Authority;
use http::uri::PathAndQuery;
use http::uri::Scheme;

use super::hpack::Field;
use super::hpack::Name;
use crate::listen::Refused;
use crate::listen::target;

/// What a head is: a request, or what is answered without anybody having been asked.
#[derive(Debug)]
pub(super) enum Head {
    /// On the heap: it is moved about before it is needed.
    Request(Box<Whole>),
    Refused(Box<Refused>),
}

/// A request without its body.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) request: Request<()>,
    /// Of its body, where it is stated.
    pub(super) length: Option<u64>,
    /// It was an extended CONNECT (RFC 8441), and is the GET that HTTP/1.1 would have for it.
    pub(super) asks_for_tunnel: bool,
    /// Of the head, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts it.
    pub(super) size: usize,
}

/// What was read of one head, or of what stands behind a body. Nothing is kept of what is too long.
#[derive(Debug)]
pub(super) struct Fields {
    most: usize,
    size: usize,
    pseudo: Pseudo,
    plain: HeaderMap,
    cookie: Cookie,
    is_malformed: bool,
}

#[derive(Debug, Default)]
struct Pseudo {
    method: Option<HeaderValue>,
    scheme: Option<HeaderValue>,
    authority: Option<HeaderValue>,
    path: Option<HeaderValue>,
    protocol: Option<HeaderValue>,
}

/// Clients send it in crumbs, which are one field.
#[derive(Debug, Default)]
enum Cookie {
    #[default]
    None,
    Whole(HeaderValue),
    Crumbs(BytesMut),
}

/// What the fields with a colon say.
struct Line {
    method: Method,
    target: Uri,
    protocol: Option<Protocol>,
}

/// What an extended CONNECT asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Protocol {
    WebSocket,
    Unknown,
}

/// It is not a request as HTTP/2 has it.
struct Malformed;

impl Fields {
    /// `most`: what may be kept, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts it.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            size: 0,
            pseudo: Pseudo::default(),
            plain: HeaderMap::new(),
            cookie: Cookie::None,
            is_malformed: false,
        }
    }

    /// Adds one. What is wrong with it is remembered.
    pub(super) fn add(&mut self, field: Field) {
        self.size = self.size.saturating_add(field.size);
        let Some(value) = field.value else { return self.is_malformed = true };
        let pseudo = match field.name {
            Name::Field(name) => return self.add_field(name, value),
            Name::Unfit(_) => return self.is_malformed = true,
            Name::Method => &mut self.pseudo.method,
            Name::Scheme => &mut self.pseudo.scheme,
            Name::Authority => &mut self.pseudo.authority,
            Name::Path => &mut self.pseudo.path,
            Name::Protocol => &mut self.pseudo.protocol,
        };
        // Each once, and before all others.
        self.is_malformed |= pseudo.is_some() || !self.plain.is_empty() || !matches!(self.cookie, Cookie::None);
        if self.size <= self.most {
            *pseudo = Some(value);
        }
    }

    fn add_field(&mut self, name: HeaderName, value: HeaderValue) {
        self.is_malformed |= is_of_http1(&name) || name == TE && value != "trailers";
        if self.is_too_long() {
        } else if name == COOKIE {
            self.cookie.add(value);
        } else if self.plain.try_append(name, value).is_err() {
            // As many as no map holds.
            self.size = usize::MAX;
        }
    }

    fn is_too_long(&self) -> bool {
        self.size > self.most
    }

    /// Whether it is longer than any client can mean.
    pub(super) fn is_abuse(&self) -> bool {
        self.size > self.most.saturating_mul(ABUSE)
    }

    /// What it was, all of it read. `ends`: there is no body.
    pub(super) fn into_head(mut self, ends: bool) -> Head {
        let line = if self.is_malformed { Err(Malformed) } else { self.pseudo.read() };
        match line.and_then(|line| Ok((self.length(ends, line.protocol)?, line))) {
            Ok((_, Line { protocol: Some(Protocol::Unknown), .. })) => self.refused(StatusCode::NOT_IMPLEMENTED),
            Ok((length, Line { method, target, protocol })) if !self.is_too_long() => {
                let asks_for_tunnel = protocol.is_some();
                if asks_for_tunnel {
                    self.plain.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                    self.plain.insert(UPGRADE, HeaderValue::from_static("websocket"));
                }
                if let Some(cookie) = self.cookie.take() {
                    self.plain.insert(COOKIE, cookie);
                }
                let mut request = Request::new(());
                *request.method_mut() = method;
                *request.uri_mut() = target;
                *request.version_mut() = Version::HTTP_2;
                *request.headers_mut() = self.plain;
                Head::Request(Box::new(Whole { request, length, asks_for_tunnel, size: self.size }))
            }
            Err(Malformed) if self.is_malformed || !self.is_too_long() => self.refused(StatusCode::BAD_REQUEST),
            Ok(_) | Err(Malformed) => self.refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        }
    }

    /// What stands behind a body; `None`: it may not.
    pub(super) fn into_trailers(self) -> Option<HeaderMap> {
        let may_stand = !self.is_malformed && self.pseudo.is_empty() && !self.is_too_long();
        may_stand.then_some(self.plain)
    }

    /// As much as is known of it.
    fn refused(self, status: StatusCode) -> Head {
        let path = self.pseudo.path.and_then(|path| read_path(&path).ok());
        Head::Refused(Box::new(Refused {
            status,
            method: self.pseudo.method.and_then(|method| Method::from_bytes(method.as_bytes()).ok()),
            target: path.map(Uri::from),
            host: self.pseudo.authority,
        }))
    }

    /// What is stated once, or several times alike. A tunnel has none.
    fn length(&self, ends: bool, protocol: Option<Protocol>) -> Result<Option<u64>, Malformed> {
        let mut lengths = self.plain.get_all(CONTENT_LENGTH).iter();
        let Some(first) = lengths.next() else { return Ok(None) };
        if protocol.is_some() {
            return Err(Malformed);
        }
        let digits =
            str::from_utf8(first.as_bytes()).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or(Malformed)?;
        let is_one = lengths.all(|other| other == first);
        if is_one && (!ends || length == 0) { Ok(Some(length)) } else { Err(Malformed) }
    }
}

impl Pseudo {
    fn is_empty(&self) -> bool {
        let all = [&self.method, &self.scheme, &self.authority, &self.path, &self.protocol];
        all.iter().all(|one| one.is_none())
    }

    fn read(&self) -> Result<Line, Malformed> {
        let method = self.method.as_ref().ok_or(Malformed)?;
        let mut method = Method::from_bytes(method.as_bytes()).map_err(|_| Malformed)?;
        let protocol = self.protocol.as_ref().map(Protocol::of);
        let mut target = uri::Parts::default();
        if let Some(authority) = &self.authority {
            target.authority = Some(Authority::try_from(authority.as_bytes()).map_err(|_| Malformed)?);
        }
        if protocol.is_some() {
            if method != Method::CONNECT {
                return Err(Malformed);
            }
            // What rules and applications see of it.
            method = Method::GET;
        }
        if method == Method::CONNECT {
            if self.scheme.is_some() || self.path.is_some() {
                return Err(Malformed);
            }
        } else {
            let scheme = self.scheme.as_ref().ok_or(Malformed)?;
            let scheme = Scheme::try_from(scheme.as_bytes()).map_err(|_| Malformed)?;
            target.scheme = target.authority.is_some().then_some(scheme);
            target.path_and_query = Some(read_path(self.path.as_ref().ok_or(Malformed)?)?);
        }
        let target = Uri::from_parts(target).map_err(|_| Malformed)?;
        Ok(Line { method, target, protocol })
    }
}

impl Protocol {
    fn of(value: &HeaderValue) -> Self {
        if value.as_bytes().eq_ignore_ascii_case(b"websocket") { Self::WebSocket } else { Self::Unknown }
    }
}

fn read_path(path: &HeaderValue) -> Result<PathAndQuery, Malformed> {
    // What stands before a `?` is no path without it.
    if !matches!(path.as_bytes(), [b'/', ..] | b"*") {
        return Err(Malformed);
    }
    let path = target::escape(Bytes::copy_from_slice(path.as_bytes()));
    PathAndQuery::from_maybe_shared(path).map_err(|_| Malformed)
}

impl Cookie {
    fn add(&mut self, crumb: HeaderValue) {
        match self {
            Self::None => *self = Self::Whole(crumb),
            Self::Whole(first) => {
                let mut crumbs = BytesMut::with_capacity(2 * (first.len() + crumb.len()));
                crumbs.extend_from_slice(first.as_bytes());
                *self = Self::Crumbs(crumbs);
                self.add(crumb);
            }
            Self::Crumbs(crumbs) => {
                crumbs.extend_from_slice(b"; ");
                crumbs.extend_from_slice(crumb.as_bytes());
            }
        }
    }

    fn take(&mut self) -> Option<HeaderValue> {
        match std::mem::take(self) {
            Self::None => None,
            Self::Whole(cookie) => Some(cookie),
            // What is between values may stand in a value.
            Self::Crumbs(crumbs) => HeaderValue::from_maybe_shared(crumbs.freeze()).ok(),
        }
    }
}

/// What is between neighbours there, and has no place here.
fn is_of_http1(name: &HeaderName) -> bool {
    match *name {
        CONNECTION | TRANSFER_ENCODING | UPGRADE => true,
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    }
}

/// So many times as long as it may be, a head is an attack.
const ABUSE: usize = 4;
