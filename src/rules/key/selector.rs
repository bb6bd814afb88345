//! The selectors of the configuration: `client_ip`, `param.username`, `header.x-api-key`, ..., and the spelling in which
//! their values are compared.

use std::fmt;
use std::str::FromStr;

use super::fold::Fold;
use super::pattern::NamePattern;
use crate::rules::client::Prefix;
use crate::wire::head::FieldName;

/// A selector, and the spelling in which its values are compared.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct KeyPart {
    pub selector: Selector,
    pub spelling: Spelling,
}

/// The spelling in which values are compared.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum Spelling {
    /// Normalised where people type names, and as sent elsewhere.
    #[default]
    Usual,
    /// Normalised like a name, and cut before the `@` of a mail address.
    LocalPart,
    AsSent,
    /// The value is a name that people and applications write in several ways.
    Name(Box<NameSpelling>),
}

/// Which spellings of a name are the same name.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct NameSpelling {
    /// Cut before the `@` of a mail address.
    pub local_part: bool,
    pub fold: Option<Fold>,
    /// The pattern that the whole name must match. All names that do not match count as one.
    pub pattern: Option<NamePattern>,
    /// Whether names that are not spelt like their reading have a second value, which all of them share. A success of
    /// `alice` then does not reset the failures of `a.lice`, who may be another user.
    pub tells_others: bool,
}

/// Where a value comes from.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Selector {
    /// The client's address; `None` until the configuration's own prefix is filled in.
    ClientIp(Option<Prefix>),
    Header(FieldName),
    Cookie(Box<str>),
    Query(Box<str>),
    /// A captured segment of the path.
    Capture(Box<str>),
    Form(Box<str>),
    /// A dotted path.
    Json(Box<str>),
    /// A dotted path of elements, which may begin anywhere.
    Xml(Box<str>),
    /// A field in the query, a form, the top level of JSON, or any element of XML.
    Param(Box<str>),
    Bearer,
    BasicUser,
    Host,
    Method,
    Path,
    Route,
    /// The id of a device cookie that is valid for the user name in the request, or one word for all others.
    Device,
    /// The accounts of the sessions that the request carries, by their marks.
    User,
    /// A claim of a verified token, by its dotted path.
    Jwt(Box<str>),
    /// The first of these that is not missing.
    First(Box<[KeyPart]>),
    /// An entry of a descriptor. No request has one.
    Descriptor(Box<str>),
}

/// The subject that the values of a selector distinguish: clients, accounts, requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SelectorSubject {
    /// Clients, by their address or device.
    Client,
    /// Accounts, or another meaning of a field that the client fills in.
    Account,
    /// Requests: what they ask for. Such a value says nothing about who asks.
    Request,
}

impl Selector {
    /// Every form of a selector, for messages and editors. A form that ends in a dot needs a name.
    pub const FORMS: &[&str] = &[
        "client_ip",
        "header.",
        "cookie.",
        "query.",
        "path.",
        "form.",
        "json.",
        "xml.",
        "param.",
        "bearer",
        "basic.user",
        "host",
        "method",
        "path",
        "route",
        "device",
        "user",
        "jwt.",
        "descriptor.",
    ];

    /// Whether the body may hold the value.
    pub fn needs_body(&self) -> bool {
        match self {
            Self::First(choices) => choices.iter().any(|choice| choice.selector.needs_body()),
            _ => matches!(self, Self::Form(_) | Self::Json(_) | Self::Xml(_) | Self::Param(_)),
        }
    }

    /// Whether values are normalised like names by default.
    pub fn normalises(&self) -> bool {
        matches!(self, Self::Form(_) | Self::Json(_) | Self::Xml(_) | Self::Param(_) | Self::BasicUser)
    }

    /// The selectors that this one takes values from: itself, or the choices of `first`.
    pub fn choices(&self) -> impl Iterator<Item = &Self> {
        let choices = match self {
            Self::First(choices) => &choices[..],
            _ => &[],
        };
        let itself = Some(self).filter(|_| choices.is_empty());
        itself.into_iter().chain(choices.iter().map(|choice| &choice.selector))
    }

    /// Whether the path of a request decides the value.
    pub fn is_of_path(&self) -> bool {
        matches!(self, Self::Path | Self::Capture(_))
    }

    /// Whether only a token that verifies has a value.
    pub fn is_verified(&self) -> bool {
        matches!(self, Self::Jwt(_))
    }

    /// Whether every request has a value.
    pub fn is_never_missing(&self) -> bool {
        matches!(self, Self::ClientIp(_) | Self::Host | Self::Method | Self::Path | Self::Device)
    }

    /// The header that the configuration names here. Other selectors read headers that are significant in any
    /// configuration, or none.
    pub fn header(&self) -> Option<&FieldName> {
        match self {
            Self::Header(name) => Some(name),
            Self::ClientIp(_)
            | Self::Cookie(_)
            | Self::Query(_)
            | Self::Capture(_)
            | Self::Form(_)
            | Self::Json(_)
            | Self::Xml(_)
            | Self::Param(_)
            | Self::Bearer
            | Self::BasicUser
            | Self::Host
            | Self::Method
            | Self::Path
            | Self::Route
            | Self::Device
            | Self::User
            | Self::Jwt(_)
            | Self::First(_)
            | Self::Descriptor(_) => None,
        }
    }

    /// Whether it is a field in which a login has the name of the account.
    pub fn is_login_name(&self) -> bool {
        matches!(self, Self::Form(_) | Self::Json(_) | Self::Xml(_) | Self::Param(_) | Self::BasicUser)
    }

    /// The subject that the values distinguish.
    pub fn subject(&self) -> SelectorSubject {
        match self {
            Self::ClientIp(_) | Self::Device => SelectorSubject::Client,
            Self::Header(_)
            | Self::Cookie(_)
            | Self::Query(_)
            | Self::Capture(_)
            | Self::Form(_)
            | Self::Json(_)
            | Self::Xml(_)
            | Self::Param(_)
            | Self::Bearer
            | Self::BasicUser
            | Self::User
            | Self::Jwt(_) => SelectorSubject::Account,
            Self::Descriptor(name) => entry_subject(name),
            Self::First(choices) => {
                let is_of = |subject| choices.iter().any(|choice| choice.selector.subject() == subject);
                let subjects = [SelectorSubject::Account, SelectorSubject::Client];
                subjects.into_iter().find(|&subject| is_of(subject)).unwrap_or(SelectorSubject::Request)
            }
            Self::Host | Self::Method | Self::Path | Self::Route => SelectorSubject::Request,
        }
    }
}

/// Entries in which Envoy writes the address of a client.
const ADDRESS_ENTRIES: [&str; 2] = ["remote_address", "masked_remote_address"];

/// Entries whose values are constants of Envoy's configuration.
const CONSTANT_ENTRIES: [&str; 5] =
    ["generic_key", "header_match", "query_match", "source_cluster", "destination_cluster"];

/// The subject that an entry of a descriptor distinguishes.
fn entry_subject(name: &str) -> SelectorSubject {
    match name {
        _ if ADDRESS_ENTRIES.contains(&name) => SelectorSubject::Client,
        _ if CONSTANT_ENTRIES.contains(&name) => SelectorSubject::Request,
        _ => SelectorSubject::Account,
    }
}

impl FromStr for Selector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let text = text.trim();
        match text {
            "client_ip" => return Ok(Self::ClientIp(None)),
            "bearer" => return Ok(Self::Bearer),
            "basic.user" => return Ok(Self::BasicUser),
            "host" => return Ok(Self::Host),
            "method" => return Ok(Self::Method),
            "path" => return Ok(Self::Path),
            "route" => return Ok(Self::Route),
            "device" => return Ok(Self::Device),
            "user" => return Ok(Self::User),
            _ => {}
        }
        let (kind, name) = text.split_once('.').unwrap_or((text, ""));
        let named: fn(Box<str>) -> Self = match kind {
            "header" if !name.is_empty() => {
                return name
                    .parse()
                    .map(Self::Header)
                    .map_err(|_| InvalidSelector::HeaderName(text["header.".len()..].to_owned()));
            }
            "header" => return Err(InvalidSelector::Nameless(kind.to_owned())),
            "cookie" => Self::Cookie,
            "query" => Self::Query,
            "path" => Self::Capture,
            "form" => Self::Form,
            "json" => Self::Json,
            "xml" => Self::Xml,
            "param" => Self::Param,
            "jwt" => Self::Jwt,
            "descriptor" => Self::Descriptor,
            "asn" | "country" | "ja4" => return Err(InvalidSelector::Later(text.to_owned())),
            _ => return Err(InvalidSelector::Unknown(text.to_owned())),
        };
        if name.is_empty() {
            return Err(InvalidSelector::Nameless(kind.to_owned()));
        }
        Ok(named(name.into()))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientIp(_) => f.write_str("client_ip"),
            Self::Header(name) => write!(f, "header.{name}"),
            Self::Cookie(name) => write!(f, "cookie.{name}"),
            Self::Query(name) => write!(f, "query.{name}"),
            Self::Capture(name) => write!(f, "path.{name}"),
            Self::Form(name) => write!(f, "form.{name}"),
            Self::Json(path) => write!(f, "json.{path}"),
            Self::Xml(path) => write!(f, "xml.{path}"),
            Self::Param(name) => write!(f, "param.{name}"),
            Self::Bearer => f.write_str("bearer"),
            Self::BasicUser => f.write_str("basic.user"),
            Self::Host => f.write_str("host"),
            Self::Method => f.write_str("method"),
            Self::Path => f.write_str("path"),
            Self::Route => f.write_str("route"),
            Self::Device => f.write_str("device"),
            Self::User => f.write_str("user"),
            Self::Jwt(path) => write!(f, "jwt.{path}"),
            Self::First(choices) => {
                f.write_str("first(")?;
                for (place, choice) in choices.iter().enumerate() {
                    let before = if place == 0 { "" } else { ", " };
                    write!(f, "{before}{}", choice.selector)?;
                }
                f.write_str(")")
            }
            Self::Descriptor(name) => write!(f, "descriptor.{name}"),
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidSelector {
    #[error("unknown selector `{0}`")]
    Unknown(String),
    #[error("`{0}` is not implemented in this version yet")]
    Later(String),
    #[error("`{0}` needs a name, such as `{0}.username`")]
    Nameless(String),
    #[error("`{0}` is not a header name")]
    HeaderName(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Selector) {
        assert_eq!(text.parse().as_ref(), Ok(expected));
        assert_eq!(expected.to_string().parse().as_ref(), Ok(expected));
    }

    #[test]
    fn every_selector_reads_as_it_prints() {
        check("client_ip", &Selector::ClientIp(None));
        check("header.X-Api-Key", &Selector::Header("x-api-key".parse().unwrap()));
        check("header.x.y-z", &Selector::Header("x.y-z".parse().unwrap()));
        check("cookie.Session", &Selector::Cookie("Session".into()));
        check("query.a[b]", &Selector::Query("a[b]".into()));
        check("path.id", &Selector::Capture("id".into()));
        check("form.user.name", &Selector::Form("user.name".into()));
        check("json.user.name", &Selector::Json("user.name".into()));
        check("xml.param.0.value", &Selector::Xml("param.0.value".into()));
        check("param.username", &Selector::Param("username".into()));
        check("bearer", &Selector::Bearer);
        check("basic.user", &Selector::BasicUser);
        check("host", &Selector::Host);
        check("method", &Selector::Method);
        check("path", &Selector::Path);
        check("route", &Selector::Route);
        check("device", &Selector::Device);
        check("user", &Selector::User);
        check("jwt.sub", &Selector::Jwt("sub".into()));
        check("jwt.realm_access.roles", &Selector::Jwt("realm_access.roles".into()));
        check("descriptor.remote_address", &Selector::Descriptor("remote_address".into()));
        check("descriptor.A.b :c", &Selector::Descriptor("A.b :c".into()));
    }

    #[test]
    fn what_is_no_selector_says_so() {
        let refused = |text: &str| text.parse::<Selector>().unwrap_err();
        assert_eq!(refused("client"), InvalidSelector::Unknown("client".into()));
        assert_eq!(refused("basic.password"), InvalidSelector::Unknown("basic.password".into()));
        assert_eq!(refused("header"), InvalidSelector::Nameless("header".into()));
        assert_eq!(refused("header."), InvalidSelector::Nameless("header".into()));
        assert_eq!(refused("param."), InvalidSelector::Nameless("param".into()));
        assert_eq!(refused("header.a b"), InvalidSelector::HeaderName("a b".into()));
    }

    #[test]
    fn every_form_is_a_selector_once_it_has_a_name() {
        for form in Selector::FORMS {
            let text = if form.ends_with('.') { format!("{form}x") } else { (*form).to_owned() };
            assert_eq!(text.parse::<Selector>().map(|selector| selector.to_string()), Ok(text));
        }
    }
}
