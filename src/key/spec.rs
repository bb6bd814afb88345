//! Which values of a request make a key, and the spelling in which they are compared.

use std::borrow::Cow;

use super::selector::KeyPart;
use super::selector::Selector;
use super::selector::Spelling;
use crate::request::CanonicalHost;
use crate::request::CanonicalPath;
use crate::request::nul;
use crate::request::text::local_part;
use crate::request::text::normalise;

/// The parts of a key. Without parts all requests share one key.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct KeySpec {
    pub parts: Vec<KeyPart>,
}

impl KeySpec {
    /// Whether the body may hold a part.
    pub fn needs_body(&self) -> bool {
        self.parts.iter().any(|part| part.selector.needs_body())
    }
}

impl KeyPart {
    /// A value that an operator wrote, in a list or on a command line, in the spelling that this part yields for
    /// requests.
    pub fn as_compared<'v>(&self, value: &'v str) -> Cow<'v, str> {
        let value = nul::before(value);
        match &self.selector {
            Selector::Host => Cow::Owned(CanonicalHost::new(value).as_str().to_owned()),
            Selector::Path => Cow::Owned(CanonicalPath::new(value).folded().to_owned()),
            Selector::Method => Cow::Owned(value.to_ascii_uppercase()),
            Selector::ClientIp(_)
            | Selector::Header(_)
            | Selector::Cookie(_)
            | Selector::Query(_)
            | Selector::Capture(_)
            | Selector::Form(_)
            | Selector::Json(_)
            | Selector::Xml(_)
            | Selector::Param(_)
            | Selector::Bearer
            | Selector::BasicUser
            | Selector::Route
            | Selector::Device
            | Selector::User
            | Selector::Jwt(_)
            | Selector::First(_)
            | Selector::Descriptor(_) => self.spelt(Cow::Borrowed(value)),
        }
    }

    /// A value in the spelling in which it is compared.
    pub(super) fn spelt<'v>(&self, value: Cow<'v, str>) -> Cow<'v, str> {
        let spell: fn(&str) -> Cow<'_, str> = match self.spelling {
            Spelling::Usual if self.selector.normalises() => normalise,
            Spelling::LocalPart => local_part,
            Spelling::Usual | Spelling::AsSent => return value,
        };
        match value {
            Cow::Borrowed(value) => spell(value),
            Cow::Owned(value) => Cow::Owned(spell(&value).into_owned()),
        }
    }
}
