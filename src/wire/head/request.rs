//! The head of a request.

use http::{Method, StatusCode, Uri, Version, uri};
use memchr::{memchr, memchr2, memmem};

use super::{Fields, KnownName, Span};

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
    /// `target` stands in the text of `fields`.
    pub fn new(method: Method, target: Target, version: Version, fields: Fields) -> Self {
        Self { method, version, fields, target, host: None }
    }

    /// A head without fields.
    pub fn to(method: Method, target: &str) -> Result<Self, InvalidTarget> {
        let mut fields = Fields::default();
        let written = fields.keep(target.as_bytes());
        let target = Target::parse(&mut fields, written)?;
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
        self.text(self.target.whole)
    }

    /// Percent-encodes characters beyond ASCII in path and query, unless they would be too long.
    pub fn encode_target(&mut self) {
        if self.path_and_query().is_ascii() {
            return;
        }
        let mut encoded = Vec::with_capacity(3 * self.path_and_query().len());
        for byte in self.path_and_query().bytes() {
            if byte.is_ascii() {
                encoded.push(byte);
            } else {
                encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
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
        self.target.authority.map(|authority| self.text(authority))
    }

    /// The scheme of a target with an authority.
    pub fn scheme(&self) -> Option<Scheme> {
        self.target.scheme
    }

    /// The one host that the request is for. Empty until it was found.
    pub fn host(&self) -> &str {
        self.host.map_or("", |host| self.text(host))
    }

    pub fn has_host(&self) -> bool {
        self.host.is_some()
    }

    /// The one `Host` field is the host of the request.
    pub fn use_host_field(&mut self) {
        self.host = self.fields.span(KnownName::HOST);
    }

    /// Puts a host in place of the `Host` field.
    pub fn set_host(&mut self, host: &str) {
        self.fields.insert(KnownName::HOST, host.as_bytes());
        self.use_host_field();
    }

    fn text(&self, span: Span) -> &str {
        str::from_utf8(self.fields.slice(span)).unwrap_or_default()
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

/// The target of a request, by positions in the text of its head. An absolute target has an authority and a scheme.
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
        let text = fields.slice(written);
        if text.iter().any(|byte| *byte <= b' ' || *byte == DELETE) {
            return Err(InvalidTarget::Malformed);
        }
        if text.len() > Self::MAX_LENGTH {
            return Err(InvalidTarget::TooLong);
        }
        if str::from_utf8(text).is_err() {
            return Err(InvalidTarget::Malformed);
        }
        match text {
            [b'/', ..] | b"*" => Ok(Self::of_path(fields, written)),
            _ => Self::of_uri(fields, written),
        }
    }

    /// Replaces the path and query by others, which stand in the text.
    pub(super) fn with_path(self, fields: &Fields, written: Span) -> Self {
        let Self { whole, query, .. } = Self::of_path(fields, written);
        Self { whole, query, ..self }
    }

    /// `written` begins with a path.
    fn of_path(fields: &Fields, written: Span) -> Self {
        let mut whole = written;
        let start = written.range().start;
        let text = fields.slice(whole);
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
        let text = fields.slice(written);
        let path = match memmem::find(text, b"://").map(|colon| colon + 3) {
            Some(start) => text[start..].iter().position(|byte| b"/?#".contains(byte)).map(|length| start + length),
            // An authority alone has no path.
            None => None,
        };
        let path = path.unwrap_or(text.len());
        let target = Uri::try_from(&text[..path]).map_err(|_| InvalidTarget::Malformed)?;
        let range = written.range();
        let whole = match &text[path..] {
            [b'/', ..] => Span::new(range.start + path, range.end),
            [] if target.scheme().is_none() => Span::default(),
            rest => {
                let rest = [b"/", rest].concat();
                fields.keep(&rest)
            }
        };
        let scheme = target.scheme().map(|scheme| match scheme.as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => Scheme::Other,
        });
        let authority = target.authority().map(|authority| {
            let authority = authority.as_str();
            // User information before `@` is no part of the host.
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            fields.keep(host.as_bytes())
        });
        Ok(Self { scheme, authority, ..Self::of_path(fields, whole) })
    }

    /// The target of a request over HTTP/2: a path or `*`, and where there is an authority, its scheme.
    pub fn from_parts(
        fields: &mut Fields,
        scheme: &[u8],
        authority: Option<&[u8]>,
        path: &[u8],
    ) -> Result<Self, InvalidTarget> {
        // A path may not begin with its query.
        if !matches!(path, [b'/', ..] | b"*") {
            return Err(InvalidTarget::Malformed);
        }
        let scheme = uri::Scheme::try_from(scheme).map_err(|_| InvalidTarget::Malformed)?;
        let mut target = Self::default();
        if let Some(authority) = authority {
            uri::Authority::try_from(authority).map_err(|_| InvalidTarget::Malformed)?;
            target.authority = Some(fields.keep(authority));
            target.scheme = Some(match scheme.as_str() {
                "http" => Scheme::Http,
                "https" => Scheme::Https,
                _ => Scheme::Other,
            });
        }
        let written = fields.keep(path);
        let Self { whole, query, .. } = Self::parse(fields, written)?;
        Ok(Self { whole, query, ..target })
    }

    /// A text that is no target, to be shown as it was written: it may have any bytes.
    pub fn unparsed(fields: &mut Fields, text: &str) -> Self {
        let whole = fields.keep(text.as_bytes());
        let query = memchr(b'?', text.as_bytes());
        let query = query.map(|mark| Span::new(whole.range().start + mark + 1, whole.range().end));
        Self { whole, query, ..Self::default() }
    }

    /// The target of a CONNECT: an authority alone.
    pub fn of_authority(fields: &mut Fields, authority: &[u8]) -> Result<Self, InvalidTarget> {
        uri::Authority::try_from(authority).map_err(|_| InvalidTarget::Malformed)?;
        Ok(Self { authority: Some(fields.keep(authority)), ..Self::default() })
    }
}
