//! The head of a request.

use std::fmt::Write;

use http::{Method, StatusCode, Uri, Version, uri};
use memchr::{memchr, memchr2};

use super::{Fields, KnownName, Span};
use crate::words::digits::count_bytes;

/// The head of a request.
#[derive(Debug)]
pub struct RequestHead {
    pub method: Method,
    pub version: Version,
    pub fields: Fields,
    target: Target,
    /// `None` until exactly one host was found.
    host: Option<Span>,
}

impl RequestHead {
    /// `target` is kept beside `fields`.
    pub fn new(method: Method, target: Target, version: Version, fields: Fields) -> Self {
        Self { method, version, fields, target, host: None }
    }

    /// A head without fields.
    pub fn to(method: Method, target: &str) -> Result<Self, InvalidTarget> {
        let mut fields = Fields::default();
        let target = Target::of_text(&mut fields, target)?;
        Ok(Self::new(method, target, Version::HTTP_11, fields))
    }

    /// The path as it was sent, without the query. Empty for a target without a path.
    pub fn path(&self) -> &str {
        self.target().0
    }

    /// Without `?`. `None`: the target has no `?`.
    pub fn query(&self) -> Option<&str> {
        self.target().1
    }

    /// The path and the query.
    pub fn target(&self) -> (&str, Option<&str>) {
        let whole = self.path_and_query();
        match self.target.query {
            None => (whole, None),
            Some(query) => {
                let (path, query) = whole.split_at(whole.len() - query.range().len());
                (&path[..path.len() - 1], Some(query))
            }
        }
    }

    /// The target in origin form.
    pub fn path_and_query(&self) -> &str {
        self.fields.kept(self.target.whole)
    }

    /// Percent-encodes characters beyond ASCII in path and query, unless they would be too long.
    pub fn encode_target(&mut self) {
        if self.path_and_query().is_ascii() {
            return;
        }
        let mut encoded = String::with_capacity(3 * self.path_and_query().len());
        for byte in self.path_and_query().bytes() {
            if byte.is_ascii() {
                encoded.push(char::from(byte));
            } else {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        if encoded.len() > Target::MAX_LENGTH {
            return;
        }
        let written = self.fields.keep(&encoded);
        self.target = self.target.with_path(&self.fields, written);
    }

    /// The authority of an absolute target, or of a request over HTTP/2.
    pub fn authority(&self) -> Option<&str> {
        self.target.authority.map(|authority| self.fields.kept(authority))
    }

    /// The scheme of a target with an authority.
    pub fn scheme(&self) -> Option<Scheme> {
        self.target.scheme
    }

    /// The one host that the request is for. Empty until it was found.
    pub fn host(&self) -> &str {
        self.host.map_or("", |host| self.fields.kept(host))
    }

    pub fn has_host(&self) -> bool {
        self.host.is_some()
    }

    /// The one `Host` field is the host of the request.
    pub fn use_host_field(&mut self) {
        self.host = self.fields.span(KnownName::HOST).and_then(|host| self.fields.keep_part(host).ok());
    }

    /// Puts a host in place of the `Host` field.
    pub fn set_host(&mut self, host: &str) {
        self.fields.insert(KnownName::HOST, host.as_bytes());
        self.use_host_field();
    }
}

// The head of a response.

/// The head of a response.
#[derive(Debug)]
pub struct ResponseHead {
    pub status: StatusCode,
    pub fields: Fields,
    /// The words of the application for the status, where they are its own.
    reason: Option<Span>,
}

impl ResponseHead {
    pub fn new(status: StatusCode, fields: Fields) -> Self {
        Self { status, fields, reason: None }
    }

    /// A head without fields.
    pub fn of(status: StatusCode) -> Self {
        Self::new(status, Fields::default())
    }

    /// `reason` stands in the text of the fields.
    #[must_use]
    pub fn with_reason(self, reason: Option<Span>) -> Self {
        Self { reason, ..self }
    }

    /// `None`: the usual words.
    pub fn reason(&self) -> Option<&[u8]> {
        self.reason.map(|reason| self.fields.slice(reason))
    }
}

// The target of a request.

const DELETE: u8 = 0x7f;

/// The target of a request, by positions in what is kept beside its fields. An absolute target has an authority and a scheme.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    pub(super) scheme: Option<Scheme>,
    pub(super) authority: Option<Span>,
    /// Path and query. Empty for a target that is an authority alone.
    pub(super) whole: Span,
    /// Without `?`.
    pub(super) query: Option<Span>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scheme {
    Http,
    Https,
    Other,
}

/// The text is not the target of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidTarget {
    #[error("this is not the target of a request")]
    Malformed,
    #[error("this target is too long")]
    TooLong,
}

impl Target {
    /// In bytes: no application takes a longer target.
    pub const MAX_LENGTH: usize = u16::MAX as usize - 1;

    /// Parses a target that stands in the text: a path, `*`, a URI, or an authority. A fragment is left out.
    pub fn parse(fields: &mut Fields, written: Span) -> Result<Self, InvalidTarget> {
        let kept = fields.keep_part(written).map_err(|_| InvalidTarget::Malformed)?;
        Self::of_kept(fields, kept)
    }

    fn of_text(fields: &mut Fields, text: &str) -> Result<Self, InvalidTarget> {
        let kept = fields.keep(text);
        Self::of_kept(fields, kept)
    }

    fn of_kept(fields: &mut Fields, written: Span) -> Result<Self, InvalidTarget> {
        let text = fields.kept(written).as_bytes();
        if count_bytes(text, |byte| byte <= b' ' || byte == DELETE) > 0 {
            return Err(InvalidTarget::Malformed);
        }
        if text.len() > Self::MAX_LENGTH {
            return Err(InvalidTarget::TooLong);
        }
        match text {
            [b'/', ..] | b"*" => Ok(Self::of_path(fields, written)),
            _ => Self::of_uri(fields, written),
        }
    }

    /// Replaces the path and query by others, which are kept beside the fields.
    pub(super) fn with_path(self, fields: &Fields, written: Span) -> Self {
        let Self { whole, query, .. } = Self::of_path(fields, written);
        Self { whole, query, ..self }
    }

    /// `written` begins with a path.
    fn of_path(fields: &Fields, written: Span) -> Self {
        let mut whole = written;
        let start = written.range().start;
        let text = fields.kept(whole).as_bytes();
        let mut query = None;
        // A fragment may have a question mark.
        if let Some(first) = memchr2(b'?', b'#', text) {
            let end = if text[first] == b'#' { Some(first) } else { memchr(b'#', text) };
            let end = end.unwrap_or(text.len());
            whole = Span::new(start, start + end);
            query = (text[first] == b'?').then(|| Span::new(start + first + 1, start + end));
        }
        Self { whole, query, ..Self::default() }
    }

    /// The path is left as it was written: applications and signatures tell `<` from `%3C`.
    fn of_uri(fields: &mut Fields, written: Span) -> Result<Self, InvalidTarget> {
        let text = fields.kept(written);
        let path = match text.find("://").map(|colon| colon + 3) {
            Some(start) => text[start..].find(['/', '?', '#']).map(|length| start + length),
            // An authority alone has no path.
            None => None,
        };
        let path = path.unwrap_or(text.len());
        let target = Uri::try_from(&text[..path]).map_err(|_| InvalidTarget::Malformed)?;
        let range = written.range();
        let rest = &text[path..];
        let whole = if rest.starts_with('/') {
            Span::new(range.start + path, range.end)
        } else if rest.is_empty() && target.scheme().is_none() {
            Span::default()
        } else {
            let rest = format!("/{rest}");
            fields.keep(&rest)
        };
        let scheme = target.scheme().map(|scheme| match scheme.as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => Scheme::Other,
        });
        let authority = target.authority().map(|authority| {
            // User information before `@` names no host, and readers differ about where it ends (RFC 9110, section 4.2.4).
            let authority = authority.as_str();
            if authority.contains('@') { Err(InvalidTarget::Malformed) } else { Ok(fields.keep(authority)) }
        });
        let authority = authority.transpose()?;
        Ok(Self { scheme, authority, ..Self::of_path(fields, whole) })
    }

    /// The target of a request over HTTP/2: a path or `*`, and where there is an authority, its scheme.
    pub fn from_parts(
        fields: &mut Fields,
        scheme: &[u8],
        authority: Option<&[u8]>,
        path: &str,
    ) -> Result<Self, InvalidTarget> {
        // A path may not begin with its query.
        if !path.starts_with('/') && path != "*" {
            return Err(InvalidTarget::Malformed);
        }
        let scheme = uri::Scheme::try_from(scheme).map_err(|_| InvalidTarget::Malformed)?;
        let mut target = Self::default();
        if let Some(authority) = authority {
            let authority = uri::Authority::try_from(authority).map_err(|_| InvalidTarget::Malformed)?;
            target.authority = Some(fields.keep(authority.as_str()));
            target.scheme = Some(match scheme.as_str() {
                "http" => Scheme::Http,
                "https" => Scheme::Https,
                _ => Scheme::Other,
            });
        }
        let Self { whole, query, .. } = Self::of_text(fields, path)?;
        Ok(Self { whole, query, ..target })
    }

    /// A text that is no target, to be shown as it was written: it may have any bytes.
    pub fn unparsed(fields: &mut Fields, text: &str) -> Self {
        let whole = fields.keep(text);
        let query = memchr(b'?', text.as_bytes());
        let query = query.map(|mark| Span::new(whole.range().start + mark + 1, whole.range().end));
        Self { whole, query, ..Self::default() }
    }

    /// The target of a CONNECT: an authority alone.
    pub fn of_authority(fields: &mut Fields, authority: &[u8]) -> Result<Self, InvalidTarget> {
        let authority = uri::Authority::try_from(authority).map_err(|_| InvalidTarget::Malformed)?;
        Ok(Self { authority: Some(fields.keep(authority.as_str())), ..Self::default() })
    }
}
