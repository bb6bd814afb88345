//! The selectors of the configuration: `client_ip`, `param.username`, `header.x-api-key`, ...

use std::fmt;
use std::str::FromStr;

use http::HeaderName;

use crate::client::Prefix;

/// Where a value comes from.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Selector {
    /// The client's address; `None` until the configuration's own prefix is filled in.
    ClientIp(Option<Prefix>),
    Header(HeaderName),
    Cookie(Box<str>),
    Query(Box<str>),
    /// A captured segment of the path.
    Capture(Box<str>),
    Form(Box<str>),
    Json(Box<str>),
    /// A field wherever it stands: query, form or top level of JSON.
    Param(Box<str>),
    Bearer,
    BasicUser,
    Host,
    Method,
    Path,
    Route,
}

impl Selector {
    /// Whether the value may stand in the body.
    pub fn needs_body(&self) -> bool {
        matches!(self, Self::Form(_) | Self::Json(_) | Self::Param(_))
    }

    /// Whether values are brought to the one spelling for names unless told otherwise.
    pub fn normalises(&self) -> bool {
        matches!(self, Self::Form(_) | Self::Json(_) | Self::Param(_) | Self::BasicUser)
    }
}

impl FromStr for Selector {
    type Err = InvalidSelector;
    fn from_str(_text: &str) -> Result<Self, InvalidSelector> {
        todo!()
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidSelector {
    #[error("unknown selector `{0}`")]
    Unknown(String),
    #[error("`{0}` needs a name, such as `{0}.username`")]
    Nameless(String),
    #[error("`{0}` is not a header name")]
    HeaderName(String),
}
