//! Which values of a request make a key, and the spelling in which they are compared.

use std::borrow::Cow;

use smallvec::SmallVec;
use smallvec::smallvec;

use super::Key;
use super::fold;
use super::fold::Fold;
use super::fold::TooManyReadings;
use super::selector::KeyPart;
use super::selector::NameSpelling;
use super::selector::Selector;
use super::selector::Spelling;
use crate::request::CanonicalHost;
use crate::request::CanonicalPath;
use crate::request::header::compared_token;
use crate::request::nul;
use crate::request::text::before_at;
use crate::request::text::local_part;
use crate::request::text::normalise;

/// The parts of a key. Without parts all requests share one key.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct KeySpec {
    pub parts: Vec<KeyPart>,
    /// The places of parts that are user names, whatever their fields are called.
    pub names: Vec<usize>,
}

impl KeySpec {
    /// Whether the body may hold a part.
    pub fn needs_body(&self) -> bool {
        self.parts.iter().any(|part| part.selector.needs_body())
    }

    /// The client in a key of this specification, as it is counted: its address, or its network.
    pub fn client_of<'k>(&self, key: &'k Key) -> Option<&'k [u8]> {
        let place = self.parts.iter().position(|part| matches!(part.selector, Selector::ClientIp(_)))?;
        key.parts().nth(place)
    }
}

impl KeyPart {
    /// What a value that an operator wrote, in a list or on a command line, is compared as: all readings that it has in a
    /// request.
    pub fn as_compared<'v>(&self, value: &'v str) -> Result<Readings<'v>, TooManyReadings> {
        let value = nul::before(value);
        Ok(match &self.selector {
            Selector::Host => smallvec![Cow::Owned(CanonicalHost::new(value).as_str().to_owned())],
            Selector::Path => smallvec![Cow::Owned(CanonicalPath::new(value).folded().to_owned())],
            Selector::Method => smallvec![Cow::Owned(value.to_ascii_uppercase())],
            Selector::Bearer => {
                let token = compared_token(value);
                return self.readings(token, self.spelt(Cow::Borrowed(token)));
            }
            Selector::ClientIp(_)
            | Selector::Header(_)
            | Selector::Cookie(_)
            | Selector::Query(_)
            | Selector::Capture(_)
            | Selector::Form(_)
            | Selector::Json(_)
            | Selector::Xml(_)
            | Selector::Param(_)
            | Selector::BasicUser
            | Selector::Route
            | Selector::Device
            | Selector::User
            | Selector::Jwt(_)
            | Selector::First(_)
            | Selector::Descriptor(_) => return self.readings(value, self.spelt(Cow::Borrowed(value))),
        })
    }

    /// Whether a value may have several readings, or another than its usual spelling.
    pub(super) fn has_readings(&self) -> bool {
        matches!(self.spelling, Spelling::Name(_))
    }

    /// A value in its usual spelling: without options that join names.
    pub(super) fn spelt<'v>(&self, value: Cow<'v, str>) -> Cow<'v, str> {
        let spell: fn(&str) -> Cow<'_, str> = match &self.spelling {
            Spelling::Usual if self.selector.normalises() => normalise,
            Spelling::LocalPart => local_part,
            Spelling::Name(name) if name.local_part && name.fold != Some(Fold::Email) => local_part,
            Spelling::Name(name) if name.fold.is_some() || self.selector.normalises() => normalise,
            Spelling::Usual | Spelling::AsSent | Spelling::Name(_) => return value,
        };
        match value {
            Cow::Borrowed(value) => spell(value),
            Cow::Owned(value) => Cow::Owned(spell(&value).into_owned()),
        }
    }

    /// What a value is compared as: each name that an application may take it for. `usual` is its usual spelling.
    pub(super) fn readings<'v>(&self, sent: &str, usual: Cow<'v, str>) -> Result<Readings<'v>, TooManyReadings> {
        let Spelling::Name(name) = &self.spelling else { return Ok(smallvec![usual]) };
        // What is missing is no name.
        if usual.is_empty() {
            return Ok(smallvec![usual]);
        }
        let matches = |value: &str| name.pattern.as_ref().is_none_or(|pattern| pattern.matches(value));
        let is_other = !matches(&usual);
        let mut readings = match name.fold {
            None if is_other => return Ok(smallvec![Cow::Borrowed(OTHER)]),
            None => return Ok(smallvec![usual]),
            Some(fold) => name.folded(fold, sent, &usual)?,
        };
        if is_other {
            // An application may still take it for a name that matches.
            readings.retain(|reading| matches(reading.trim_end_matches(SPELT_OTHERWISE)));
            readings.push(Cow::Borrowed(OTHER));
        }
        Ok(readings)
    }

    /// Whether a value is a whole name: a success tells who it was. Without the domain of an address it does not, and a name that
    /// does not match its pattern is that of many.
    pub(super) fn is_whole_name(&self, sent: &str) -> bool {
        let is_local = |usual: Cow<'_, str>| *usual == *normalise(sent);
        match &self.spelling {
            Spelling::Usual | Spelling::AsSent => true,
            Spelling::LocalPart => is_local(self.spelt(Cow::Borrowed(sent))),
            Spelling::Name(name) => {
                let usual = self.spelt(Cow::Borrowed(sent));
                let matches = name.pattern.as_ref().is_none_or(|pattern| pattern.matches(&usual));
                matches && (!name.local_part || *before_at(sent) == *sent)
            }
        }
    }

    /// Whether a value is a whole name that nobody else has, whatever the application takes for one: its success is its
    /// own.
    pub(super) fn is_own_name(&self, sent: &str) -> bool {
        if !self.is_whole_name(sent) {
            return false;
        }
        let Spelling::Name(name) = &self.spelling else { return true };
        let usual = self.spelt(Cow::Borrowed(sent));
        match self.readings(sent, usual.clone()).as_deref() {
            Ok([reading]) => *reading == usual || name.is_one_mailbox(reading),
            _ => false,
        }
    }
}

impl NameSpelling {
    /// The readings of a name, and beside them the values for all that are spelt otherwise.
    fn folded<'v>(&self, fold: Fold, sent: &str, usual: &Cow<'v, str>) -> Result<Readings<'v>, TooManyReadings> {
        let sent = if self.local_part && fold == Fold::Letters { before_at(sent) } else { sent };
        let mut readings = fold::readings(fold, sent, usual.clone())?;
        if self.local_part && fold == Fold::Email {
            for reading in &mut readings {
                *reading = Cow::Owned(before_at(reading).to_owned());
            }
        }
        let is_itself = matches!(&readings[..], [only] if only == usual || self.is_one_mailbox(only));
        if self.tells_others && !is_itself {
            let others: Readings<'v> =
                readings.iter().map(|reading| Cow::Owned(format!("{reading}{SPELT_OTHERWISE}"))).collect();
            readings.extend(others);
        }
        Ok(readings)
    }

    /// Whether a name of this one reading belongs to the same person, however it is spelt.
    fn is_one_mailbox(&self, reading: &str) -> bool {
        !self.local_part && self.fold.is_some_and(|fold| fold::is_one_mailbox(fold, reading))
    }
}

/// All that a value is compared as.
pub type Readings<'v> = SmallVec<[Cow<'v, str>; 1]>;

/// The value of all names that do not match their pattern. No request can send it, because of the NUL.
pub(super) const OTHER: &str = "\0(other)";

/// Behind a name: the value of all that read so and are spelt otherwise.
pub(super) const SPELT_OTHERWISE: &str = "\0";
