//! Names of fields in configurations and rules.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::HeaderName;

use super::KnownName;

/// The name of a field, in lower case.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct FieldName(Kind);

#[derive(Clone, Eq, Hash, PartialEq)]
enum Kind {
    Known(KnownName),
    Other(Arc<str>),
}

/// A name to look for, in lower case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Name<'n> {
    Known(KnownName),
    /// It has no number.
    Other(&'n str),
}

/// The text is not a token (RFC 9110, section 5.6.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is not the name of a field")]
pub struct InvalidFieldName;

impl FieldName {
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Kind::Known(name) => name.as_str(),
            Kind::Other(name) => name,
        }
    }

    /// `None`: it has no number.
    pub fn known(&self) -> Option<KnownName> {
        match &self.0 {
            Kind::Known(name) => Some(*name),
            Kind::Other(_) => None,
        }
    }

    fn of(lower: &str) -> Self {
        Self(KnownName::of(lower.as_bytes()).map_or_else(|| Kind::Other(lower.into()), Kind::Known))
    }
}

impl FromStr for FieldName {
    type Err = InvalidFieldName;

    /// In any case.
    fn from_str(text: &str) -> Result<Self, InvalidFieldName> {
        let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| InvalidFieldName)?;
        Ok(Self::of(name.as_str()))
    }
}

impl From<KnownName> for FieldName {
    fn from(name: KnownName) -> Self {
        Self(Kind::Known(name))
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<'n> Name<'n> {
    /// `text` is in lower case.
    pub fn of(text: &'n str) -> Self {
        KnownName::of(text.as_bytes()).map_or(Self::Other(text), Self::Known)
    }

    pub fn as_str(self) -> &'n str {
        match self {
            Self::Known(name) => name.as_str(),
            Self::Other(name) => name,
        }
    }
}

impl From<KnownName> for Name<'_> {
    fn from(name: KnownName) -> Self {
        Self::Known(name)
    }
}

impl<'n> From<&'n FieldName> for Name<'n> {
    fn from(name: &'n FieldName) -> Self {
        match &name.0 {
            Kind::Known(name) => Self::Known(*name),
            Kind::Other(name) => Self::Other(name),
        }
    }
}
