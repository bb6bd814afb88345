//! The request that Envoy describes, as a head like one that arrived.

use std::net::IpAddr;

use envoy_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use envoy_types::pb::envoy::config::core::v3::{HeaderValue as EnvoyHeaderValue, HeaderValueOption};
use envoy_types::pb::google::protobuf::BoolValue;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, StatusCode, Version};

use crate::listen::RefusedHead;
use crate::wire::head::{Fields, KnownName, Name, NameSet, RequestHead, Target};

/// In attributes, as `ext_authz` has them.
pub(super) const ATTRIBUTES: PartNames = PartNames {
    source: "attributes.source.address",
    method: "attributes.request.http.method",
    path: "attributes.request.http.path",
    host: "attributes.request.http.host",
};

/// Among the header fields, as `ext_proc` has them.
pub(super) const PSEUDO_HEADERS: PartNames =
    PartNames { source: "source.address", method: ":method", path: ":path", host: ":authority" };

/// In bytes: enough to recognise the request.
const MAX_LOGGED: usize = 1024;

/// In bytes: four times the longest head that Envoy takes by default.
const MAX_HEAD: usize = 256 * 1024;

/// Envoy's description of a request. Pseudo-header fields stand where others do, or in attributes of their own.
#[derive(Debug, Default)]
pub(super) struct Description {
    method: Option<String>,
    path: Option<String>,
    host: Option<String>,
    scheme: Option<String>,
    version: Option<Version>,
    fields: Fields,
    /// The head announces a body.
    announces_body: bool,
    /// The other end of Envoy's connection, as far as Envoy knows it.
    pub(super) source: Option<IpAddr>,
}

/// Why a call describes no request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum BadDescription {
    #[error("{0} is missing, so that the request is not described")]
    Missing(&'static str),
    #[error("{0} describes the request a second time")]
    Twice(&'static str),
    #[error("{0} is malformed")]
    Malformed(&'static str),
    #[error("{0} asks for a mode that is not supported")]
    Unsupported(&'static str),
    #[error("descriptors[].is_negative_hits: hits are not given back")]
    NegativeHits,
    #[error(
        "request_headers did not come before the answer, which response.code_details does not call one of Envoy itself"
    )]
    Unasked,
    #[error("response_headers came before the request was decided")]
    Undecided,
}

/// The method, the target or the host is none: such a request is refused, as if it had arrived.
#[derive(Debug)]
pub(super) struct MalformedHead {
    pub(super) reason: &'static str,
    pub(super) shown: RefusedHead,
    pub(super) fields: Fields,
}

/// The names of the parts of a description, in each kind of message.
#[derive(Debug)]
pub(super) struct PartNames {
    pub(super) source: &'static str,
    method: &'static str,
    path: &'static str,
    host: &'static str,
}

impl BadDescription {
    /// The attribute or header field that it is about.
    pub(super) fn part(self) -> &'static str {
        match self {
            Self::Missing(part) | Self::Twice(part) | Self::Malformed(part) | Self::Unsupported(part) => part,
            Self::NegativeHits => "descriptors[].is_negative_hits",
            Self::Unasked => "request_headers",
            Self::Undecided => "response_headers",
        }
    }
}

impl Description {
    /// The description of a call about descriptors: the domain is recorded in place of the host.
    pub(super) fn of_domain(domain: String) -> Self {
        Self { method: Some(Method::POST.to_string()), host: Some(domain), ..Self::default() }
    }

    /// Takes a header field. What the fields say of the body's framing holds between Envoy and its client alone.
    pub(super) fn add(&mut self, name: &str, value: &[u8]) -> Result<(), BadDescription> {
        let text = || String::from_utf8(value.to_vec()).map_err(|_| BadDescription::Malformed("a pseudo-header field"));
        match name {
            ":method" => once(&mut self.method, text()?, ":method"),
            ":path" => once(&mut self.path, text()?, ":path"),
            ":authority" => once(&mut self.host, text()?, ":authority"),
            ":scheme" => once(&mut self.scheme, text()?, ":scheme"),
            // An extended CONNECT has it.
            ":protocol" => Ok(()),
            "transfer-encoding" => {
                self.announces_body = true;
                Ok(())
            }
            name => {
                self.announces_body |= name == "content-length" && value != b"0";
                let name = HeaderName::from_bytes(name.as_bytes());
                let name = name.map_err(|_| BadDescription::Malformed("the name of a header field"))?;
                HeaderValue::from_bytes(value).map_err(|_| BadDescription::Malformed("the value of a header field"))?;
                if self.fields.text_length() + name.as_str().len() + value.len() > MAX_HEAD {
                    return Err(BadDescription::Malformed("the size of the header"));
                }
                self.fields.append(Name::of(name.as_str()), value);
                Ok(())
            }
        }
    }

    /// Takes what an attribute says of the request line.
    pub(super) fn set_method(&mut self, method: String) -> Result<(), BadDescription> {
        once(&mut self.method, method, "attributes.request.http.method")
    }

    pub(super) fn set_path(&mut self, path: String) -> Result<(), BadDescription> {
        once(&mut self.path, path, "attributes.request.http.path")
    }

    pub(super) fn set_host(&mut self, host: String) -> Result<(), BadDescription> {
        once(&mut self.host, host, "attributes.request.http.host")
    }

    pub(super) fn set_scheme(&mut self, scheme: String) -> Result<(), BadDescription> {
        once(&mut self.scheme, scheme, "attributes.request.http.scheme")
    }

    /// `HTTP/1.1`, as Envoy writes it.
    pub(super) fn set_protocol(&mut self, protocol: &str) {
        self.version = match protocol {
            "HTTP/1.0" => Some(Version::HTTP_10),
            "HTTP/2" => Some(Version::HTTP_2),
            "HTTP/3" => Some(Version::HTTP_3),
            _ => None,
        };
    }

    /// Whether what comes behind the head is another protocol and no body.
    pub(super) fn is_upgrade(&self) -> bool {
        let is_get = self.method.as_deref() == Some("GET");
        is_get && self.fields.has(KnownName::UPGRADE) && !self.announces_body
    }

    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The scheme of the client's connection.
    pub(super) fn scheme(&self) -> &'static str {
        if self.scheme.as_deref() == Some("https") { "https" } else { "http" }
    }

    /// Whether each part is there that every request has.
    pub(super) fn check(&self, names: &PartNames) -> Result<(), BadDescription> {
        let parts = [(&self.method, names.method), (&self.path, names.path), (&self.host, names.host)];
        match parts.into_iter().find(|(part, _)| part.is_none()) {
            Some((_, name)) => Err(BadDescription::Missing(name)),
            None => Ok(()),
        }
    }

    /// The parts that are there, but never longer than a log line should be.
    pub(super) fn shown(&self) -> RefusedHead {
        let [method, path, host] = [&self.method, &self.path, &self.host].map(|part| part.as_deref());
        shown(method, path, host)
    }

    /// The head of the request, whose parts are there. It has its one target and its one host.
    pub(super) fn into_head(self) -> Result<RequestHead, Box<MalformedHead>> {
        let scheme = self.scheme();
        let Self { method, path, host, version, mut fields, .. } = self;
        let [method, path, host] = [method, path, host].map(Option::unwrap_or_default);
        let malformed = |reason, fields| {
            Err(Box::new(MalformedHead { reason, shown: shown(Some(&method), Some(&path), Some(&host)), fields }))
        };
        let Ok(parsed_method) = Method::from_bytes(method.as_bytes()) else {
            return malformed("the method is malformed", fields);
        };
        // Envoy may forward a fragment, to an application that may read on behind it.
        if path.contains('#') {
            return malformed("the request target has a fragment", fields);
        }
        let target = Target::from_parts(&mut fields, scheme.as_bytes(), Some(host.as_bytes()), &path);
        let Ok(target) = target else {
            let is_host = Authority::try_from(&*host).is_ok();
            let reason = if is_host { "the request target is malformed" } else { "the Host header is malformed" };
            return malformed(reason, fields);
        };
        if !fields.has(KnownName::HOST) {
            fields.append(KnownName::HOST, host.as_bytes());
        }
        Ok(RequestHead::new(parsed_method, target, version.unwrap_or(Version::HTTP_11), fields))
    }
}

fn shown(method: Option<&str>, path: Option<&str>, host: Option<&str>) -> RefusedHead {
    let [path, host] = [path, host].map(|part| part.map(|text| start(text).to_owned()));
    let (path, query) = match path.as_deref().and_then(|path| path.split_once('?')) {
        Some((path, query)) => (Some(path.to_owned()), Some(query.to_owned())),
        None => (path, None),
    };
    let method = method.and_then(|method| Method::from_bytes(start(method).as_bytes()).ok());
    RefusedHead { status: StatusCode::BAD_REQUEST, method, path, query, host, fields: Fields::default() }
}

/// The start of a text that may have any length, cut at the end of a character.
fn start(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_LOGGED)).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

/// Sets what may be said twice only in the same words. An empty text says nothing.
fn once(place: &mut Option<String>, text: String, part: &'static str) -> Result<(), BadDescription> {
    match place {
        _ if text.is_empty() => Ok(()),
        Some(there) if *there != text => Err(BadDescription::Twice(part)),
        _ => {
            *place = Some(text);
            Ok(())
        }
    }
}

/// The address in `127.0.0.9:54321`, `[2001:db8::1]:443`, or without a port.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    text.parse::<std::net::SocketAddr>().map(|socket| socket.ip()).or_else(|_| text.parse()).ok()
}

// Header fields in Envoy's messages.

const FRAMING: NameSet = NameSet::of(&[KnownName::CONNECTION, KnownName::CONTENT_LENGTH, KnownName::TRANSFER_ENCODING]);

/// The name and the value of a field. The value stands in one of both places.
pub(super) fn name_and_value(header: &EnvoyHeaderValue) -> (&str, &[u8]) {
    let value = if header.raw_value.is_empty() { header.value.as_bytes() } else { &header.raw_value };
    (&header.key, value)
}

/// Whether a field has two values that differ.
pub(super) fn has_two_values(headers: &[EnvoyHeaderValue]) -> bool {
    let differ = |EnvoyHeaderValue { value, raw_value, .. }: &EnvoyHeaderValue| value.as_bytes() != raw_value;
    headers.iter().any(|header| !header.value.is_empty() && !header.raw_value.is_empty() && differ(header))
}

/// How Envoy writes a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Write {
    /// Beside others of its name.
    Append,
    /// In place of others of its name.
    Replace,
}

/// A field whose value is text, as `ext_authz` reads it. Of other bytes a replacement is left.
pub(super) fn text(name: &str, value: &[u8], write: Write) -> HeaderValueOption {
    let value = String::from_utf8_lossy(value).into_owned();
    option(EnvoyHeaderValue { key: name.to_owned(), value, raw_value: Vec::new() }, write)
}

/// A field whose value is bytes, as `ext_proc` reads it.
pub(super) fn raw(name: &str, value: &[u8], write: Write) -> HeaderValueOption {
    option(EnvoyHeaderValue { key: name.to_owned(), value: String::new(), raw_value: value.to_vec() }, write)
}

#[expect(deprecated, reason = "ext_proc of Envoy does not append without `append`")]
fn option(header: EnvoyHeaderValue, write: Write) -> HeaderValueOption {
    let (append, append_action) = match write {
        Write::Append => (true, HeaderAppendAction::AppendIfExistsOrAdd),
        Write::Replace => (false, HeaderAppendAction::OverwriteIfExistsOrAdd),
    };
    HeaderValueOption {
        header: Some(header),
        append: Some(BoolValue { value: append }),
        append_action: append_action.into(),
        ..HeaderValueOption::default()
    }
}

/// How a field of the gateway is added to the fields of the application's answer. The gateway alone sets the id of the
/// request.
pub(super) fn answer_field_write(name: Name<'_>) -> Write {
    if name == KnownName::X_REQUEST_ID.into() { Write::Replace } else { Write::Append }
}

/// The fields of an answer in place of the application's. Envoy writes the framing itself.
pub(super) fn of_answer(
    fields: &Fields,
    option: fn(&str, &[u8], Write) -> HeaderValueOption,
) -> Vec<HeaderValueOption> {
    let mut options: Vec<HeaderValueOption> = Vec::new();
    for field in fields.iter() {
        let name = field.name.as_str();
        if matches!(field.name, Name::Known(known) if FRAMING.has(known)) {
            continue;
        }
        let is_there = |there: &HeaderValueOption| there.header.as_ref().is_some_and(|header| header.key == name);
        let write = if options.iter().any(is_there) { Write::Append } else { Write::Replace };
        options.push(option(name, field.value, write));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(fields: &[(&str, &str)]) -> Result<Description, BadDescription> {
        let mut description = Description::default();
        for (name, value) in fields {
            description.add(name, value.as_bytes())?;
        }
        Ok(description)
    }

    const LOGIN: [(&str, &str); 5] =
        [(":method", "POST"), (":path", "/login?a=1"), (":authority", "a.test"), (":scheme", "https"), ("x-a", "1")];

    #[test]
    fn a_description_becomes_the_head_of_a_request() {
        let description = described(&LOGIN).expect("it is whole");
        assert_eq!(description.scheme(), "https");
        let head = description.into_head().expect("a head");
        assert_eq!((head.method.as_str(), head.target()), ("POST", ("/login", Some("a=1"))));
        assert_eq!(head.authority(), Some("a.test"));
        assert_eq!(head.fields.get(KnownName::HOST), Some(&b"a.test"[..]));
        assert_eq!(head.fields.get(Name::of("x-a")), Some(&b"1"[..]));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (left_out, attribute) in [
            (":method", "attributes.request.http.method"),
            (":path", "attributes.request.http.path"),
            (":authority", "attributes.request.http.host"),
        ] {
            let rest: Vec<_> = LOGIN.into_iter().filter(|(name, _)| *name != left_out).collect();
            let description = described(&rest).expect("each part is sound");
            assert_eq!(description.check(&PSEUDO_HEADERS), Err(BadDescription::Missing(left_out)));
            assert_eq!(description.check(&ATTRIBUTES), Err(BadDescription::Missing(attribute)));
        }
        assert_eq!(described(&LOGIN).expect("each part is sound").check(&ATTRIBUTES), Ok(()));
    }

    #[test]
    fn two_descriptions_are_none() {
        let mut description = described(&LOGIN).expect("it is whole");
        assert_eq!(description.set_path("/login?a=1".to_owned()), Ok(()));
        let bad = description.set_path("/".to_owned());
        assert_eq!(bad, Err(BadDescription::Twice("attributes.request.http.path")));
        assert!(described(&[(":path", "/a"), (":path", "/b")]).is_err());
    }

    #[test]
    fn a_target_or_a_host_that_is_none_is_the_mistake_of_the_client() {
        for (name, value, reason) in [
            (":path", "login", "the request target is malformed"),
            (":path", "/a b", "the request target is malformed"),
            (":path", "/a#/../b", "the request target has a fragment"),
            (":authority", "a b", "the Host header is malformed"),
            (":method", "G ET", "the method is malformed"),
        ] {
            let fields = LOGIN.map(|(known, there)| (known, if known == name { value } else { there }));
            let malformed = described(&fields).expect("each part is there").into_head().expect_err(value);
            assert_eq!(malformed.reason, reason, "{name} {value}");
            let RefusedHead { method, path, query, host, .. } = malformed.shown;
            let part = |known, there| Some(if known == name { value } else { there });
            assert_eq!(method.is_some(), name != ":method");
            assert_eq!(host.as_deref(), part(":authority", "a.test"));
            assert_eq!(path.as_deref(), part(":path", "/login"));
            assert_eq!(query.is_some(), name != ":path");
        }
    }

    #[test]
    fn of_what_is_malformed_the_start_is_kept() {
        let long = format!("/{}", "é".repeat(100_000));
        let description =
            described(&[(":method", "GET"), (":path", &long), (":authority", "a b")]).expect("it is whole");
        let malformed = description.into_head().expect_err("no host");
        assert_eq!(malformed.shown.path.map(|path| path.len()), Some(MAX_LOGGED - 1));
    }

    #[test]
    fn fields_that_no_head_can_have_are_refused() {
        assert!(described(&[("a b", "1")]).is_err());
        assert!(described(&[("a", "1\r\nb: 2")]).is_err());
        assert!(described(&[("a", &"x".repeat(MAX_HEAD))]).is_err());
    }

    #[test]
    fn only_an_upgrade_without_a_body_is_none() {
        let is_upgrade = |method: &str, more: &[(&str, &str)]| {
            let fields = [&[(":method", method), (":path", "/"), (":authority", "a")][..], more].concat();
            described(&fields).expect("each part is sound").is_upgrade()
        };
        let upgrade = ("upgrade", "websocket");
        assert!(is_upgrade("GET", &[upgrade]) && is_upgrade("GET", &[upgrade, ("content-length", "0")]));
        assert!(!is_upgrade("GET", &[]) && !is_upgrade("POST", &[upgrade]));
        assert!(!is_upgrade("GET", &[upgrade, ("content-length", "5")]));
        assert!(!is_upgrade("GET", &[upgrade, ("transfer-encoding", "chunked")]));
    }

    #[test]
    fn addresses_come_with_and_without_ports() {
        let expected: IpAddr = "2001:db8::1".parse().expect("an address");
        assert_eq!(address("[2001:db8::1]:443"), Some(expected));
        assert_eq!(address("2001:db8::1"), Some(expected));
        assert_eq!(address("127.0.0.9:54321").map(|address| address.to_string()).as_deref(), Some("127.0.0.9"));
        assert_eq!(address("/run/socket"), None);
    }
}
