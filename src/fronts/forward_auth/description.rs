//! Reads which request a proxy asks about. The client writes headers too: what could be its word instead of the proxy's is
//! refused.

use http::Method;

use super::endpoint::Endpoint;
use crate::client::forwarded::forwarded_scheme;
use crate::gateway::admit::framing::BadRequest;
use crate::head::Fields;
use crate::head::KnownName;
use crate::head::Name;
use crate::head::RequestHead;
use crate::head::Span;
use crate::head::Target;

/// The request that a question describes.
#[derive(Debug)]
pub(super) struct Description {
    method: Method,
    /// Path and query, or the whole URL.
    target: Span,
    /// `None`: that of the URL.
    host: Option<Span>,
    /// Of the client's connection.
    pub(super) scheme: &'static str,
}

/// Why a question describes no request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadDescription {
    #[error("{0} is missing, so that the request is not described")]
    Missing(&'static str),
    #[error("{0} is there more than once")]
    Repeated(&'static str),
    #[error("{0} describes the request a second time")]
    Twice(&'static str),
    #[error("{0} is malformed")]
    Malformed(&'static str),
}

impl BadDescription {
    /// The header that it is about.
    pub fn header(self) -> &'static str {
        match self {
            Self::Missing(header) | Self::Repeated(header) | Self::Twice(header) | Self::Malformed(header) => header,
        }
    }
}

impl Description {
    /// Reads the description in the head of a question, which has its one host. `own_scheme` is that of the proxy's
    /// connection, where the proxy does not say that of its client's.
    pub(super) fn read(endpoint: Endpoint, fields: &Fields, own_scheme: &'static str) -> Result<Self, BadDescription> {
        match endpoint {
            Endpoint::Nginx => Self::original_uri(fields, own_scheme),
            Endpoint::Auth if fields.get(FORWARDED_URI.name()).is_some() => {
                // A client of a proxy that describes in one way may send the headers of the other.
                match ORIGINAL.iter().find(|header| fields.get(header.name()).is_some()) {
                    Some(second) => Err(BadDescription::Twice(second.0)),
                    None => Self::forwarded(fields),
                }
            }
            Endpoint::Auth => match ORIGINAL.iter().any(|header| fields.get(header.name()).is_some()) {
                false => Err(BadDescription::Missing(FORWARDED_URI.0)),
                true if fields.get(FORWARDED_METHOD.name()).is_some() => Err(BadDescription::Twice(FORWARDED_METHOD.0)),
                true if fields.get(ORIGINAL_URL.name()).is_none() => Self::original_uri(fields, own_scheme),
                true if fields.get(ORIGINAL_URI.name()).is_some() => Err(BadDescription::Twice(ORIGINAL_URL.0)),
                true => Self::original_url(fields),
            },
        }
    }

    fn forwarded(fields: &Fields) -> Result<Self, BadDescription> {
        let target = FORWARDED_URI.span(fields)?;
        let method = FORWARDED_METHOD.method(fields)?;
        let host = Some(FORWARDED_HOST.span(fields)?);
        let scheme = forwarded_proto(fields)?;
        Ok(Self { method, target, host, scheme })
    }

    fn original_uri(fields: &Fields, own_scheme: &'static str) -> Result<Self, BadDescription> {
        let target = ORIGINAL_URI.span(fields)?;
        let method = ORIGINAL_METHOD.method(fields)?;
        let host = Some(HOST.span(fields)?);
        let scheme = forwarded_proto(fields).unwrap_or(own_scheme);
        Ok(Self { method, target, host, scheme })
    }

    fn original_url(fields: &Fields) -> Result<Self, BadDescription> {
        let target = ORIGINAL_URL.span(fields)?;
        let method = ORIGINAL_METHOD.method(fields)?;
        let url = fields.slice(target);
        let begins = |start: &[u8]| url.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
        let scheme = match () {
            () if begins(b"https://") => "https",
            () if begins(b"http://") => "http",
            () => return Err(BadDescription::Malformed(ORIGINAL_URL.0)),
        };
        Ok(Self { method, target, host: None, scheme })
    }

    /// The target of the request, whose text is in the head of the question. It is the client's, so that a malformed one
    /// says nothing about the proxy. One with a fragment is malformed: no request has one, and the proxy forwards it to an
    /// application that may read on behind it, and so is an authority alone.
    pub(super) fn target(&self, question: &mut RequestHead) -> Result<Target, BadRequest> {
        let written = question.fields.slice(self.target);
        let is_authority = !matches!(written, [b'/', ..] | b"*") && !written.windows(3).any(|part| part == b"://");
        if is_authority || written.contains(&b'#') {
            return Err(BadRequest::Target);
        }
        Target::parse(&mut question.fields, self.target).map_err(|_| BadRequest::Target)
    }

    /// In place of a malformed target: its start as it was written, for the log.
    pub(super) fn shown_target(&self, question: &mut RequestHead) -> Target {
        let written = question.fields.slice(self.target);
        let start = &written[..written.len().min(MAX_LOGGED)];
        let start = String::from_utf8_lossy(start).into_owned();
        Target::unparsed(&mut question.fields, &start)
    }

    /// Turns the head of the question into that of the request.
    pub(super) fn into_head(self, target: Target, question: RequestHead) -> RequestHead {
        let mut head = RequestHead::new(self.method, target, question.version, question.fields);
        let host = match self.host {
            Some(host) => head.fields.slice(host).to_vec(),
            None => head.authority().unwrap_or_default().as_bytes().to_vec(),
        };
        for header in DESCRIBING {
            head.fields.remove(header.name());
        }
        head.fields.insert(KnownName::HOST, &host);
        // The log has it as it was described, should it be malformed.
        head.use_host_field();
        head
    }
}

/// A header by its name as people write it.
#[derive(Clone, Copy, Debug)]
struct Header(&'static str, &'static str);

impl Header {
    fn name(self) -> Name<'static> {
        Name::of(self.1)
    }

    /// Where the one value stands.
    fn span(self, fields: &Fields) -> Result<Span, BadDescription> {
        match fields.single_span(self.name()) {
            Some(value) if value.is_empty() => Err(BadDescription::Missing(self.0)),
            Some(value) => Ok(value),
            None if fields.get(self.name()).is_some() => Err(BadDescription::Repeated(self.0)),
            None => Err(BadDescription::Missing(self.0)),
        }
    }

    fn method(self, fields: &Fields) -> Result<Method, BadDescription> {
        Method::from_bytes(fields.slice(self.span(fields)?)).map_err(|_| BadDescription::Malformed(self.0))
    }
}

/// WebSocket is HTTP until it is upgraded.
fn forwarded_proto(fields: &Fields) -> Result<&'static str, BadDescription> {
    FORWARDED_PROTO.span(fields)?;
    match forwarded_scheme(fields) {
        Some("http" | "ws") => Ok("http"),
        Some(_) => Ok("https"),
        None => Err(BadDescription::Malformed(FORWARDED_PROTO.0)),
    }
}

/// In bytes: enough to recognise what was asked for.
const MAX_LOGGED: usize = 1024;

const FORWARDED_METHOD: Header = Header("X-Forwarded-Method", "x-forwarded-method");
const FORWARDED_PROTO: Header = Header("X-Forwarded-Proto", "x-forwarded-proto");
const FORWARDED_HOST: Header = Header("X-Forwarded-Host", "x-forwarded-host");
const FORWARDED_URI: Header = Header("X-Forwarded-Uri", "x-forwarded-uri");
const ORIGINAL_METHOD: Header = Header("X-Original-Method", "x-original-method");
const ORIGINAL_URI: Header = Header("X-Original-URI", "x-original-uri");
const ORIGINAL_URL: Header = Header("X-Original-URL", "x-original-url");
const HOST: Header = Header("Host", "host");

const ORIGINAL: [Header; 3] = [ORIGINAL_METHOD, ORIGINAL_URI, ORIGINAL_URL];

/// None of them is the client's, so that no key sees them.
const DESCRIBING: [Header; 7] =
    [FORWARDED_METHOD, FORWARDED_PROTO, FORWARDED_HOST, FORWARDED_URI, ORIGINAL_METHOD, ORIGINAL_URI, ORIGINAL_URL];
