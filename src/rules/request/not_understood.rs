//! Why a part of a request is not understood.

use std::fmt;

use serde::{Serialize, Serializer};

/// Why a body, a query, a cookie header or a credential is not exactly what well-behaved clients write. Some application
/// may read another value there than the gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotUnderstood {
    /// The gateway did not see the body.
    Unseen,
    /// It saw only the beginning of the body.
    TooLong,
    /// The body has a `Content-Encoding` that was not undone to its end.
    Coding,
    ContentType,
    Charset,
    /// The body is in no format, or in another one than its `Content-Type` says.
    Format,
    Form,
    Multipart,
    Json,
    Xml,
    TooManyFields,
    /// A name that some frameworks read as the name of the field.
    Name,
    /// The field stands there several times, in a format in which it does not.
    Repeated,
    /// The field has a value that applications read differently.
    Value,
    Query,
    QueryName,
    /// An escaped question mark in the path: some servers read a query behind it.
    QueryInPath,
    Cookies,
    CookieName,
    Credentials,
    /// The method may be overridden in a part that is not understood.
    Method,
    /// The value is longer than the gateway compares.
    LongValue,
}

impl NotUnderstood {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unseen => "the body was not sent along",
            Self::TooLong => "the body is longer than `inspect_body`, or was cut",
            Self::Coding => "the body has an encoding that cannot be undone",
            Self::ContentType => "its Content-Type is not as clients write it",
            Self::Charset => "the body is in a character set other than UTF-8, ASCII and Latin-1",
            Self::Format => "the body is not in one format, or not in the one that its Content-Type says",
            Self::Form => "its form is not encoded as clients encode it",
            Self::Multipart => "a part of its body is not as clients write it",
            Self::Json => "its body is not JSON from its first to its last byte",
            Self::Xml => "its body is not XML as clients write it",
            Self::TooManyFields => "its body or query has more than 500 fields",
            Self::Name => "its body has a field whose name may be read as this one",
            Self::Repeated => "its body has the field several times",
            Self::Value => "the field has a value that applications read differently",
            Self::Query => "its query is not encoded as clients encode it",
            Self::QueryName => "its query has a parameter whose name may be read as this one",
            Self::QueryInPath => "its path has an escaped question mark, behind which some servers read a query",
            Self::Cookies => "its Cookie header is not as clients write it",
            Self::CookieName => "it has a cookie whose name may be read as this one",
            Self::Credentials => "its Authorization header is not as clients write it",
            Self::Method => "a part of it that is not understood may name another method",
            Self::LongValue => "the value is too long to be compared",
        }
    }
}

impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for NotUnderstood {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
