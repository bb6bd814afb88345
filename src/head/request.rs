//! The head of a request.

use http::Method;
use http::Version;

use super::Fields;
use super::KnownName;
use super::Scheme;
use super::Span;
use super::Target;
use super::target::InvalidTarget;

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

    /// Percent-encodes what is not ASCII in path and query, unless they would be too long.
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

    /// Of an absolute target, or of a request over HTTP/2.
    pub fn authority(&self) -> Option<&str> {
        self.target.authority.map(|authority| self.text(authority))
    }

    /// Of a target with an authority.
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
