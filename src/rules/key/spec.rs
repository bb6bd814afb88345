//! Which values of a request make a key, and the spelling in which they are compared.

use std::borrow::Cow;
use std::net::IpAddr;

use caseless::default_case_fold_str;
use smallvec::{SmallVec, smallvec};

use super::fold::{Fold, TooManyReadings};
use super::selector::{KeyPart, NameSpelling, Selector, SelectorSubject, Spelling};
use super::{Key, fold};
use crate::rules::client::ClientIp;
use crate::rules::key::extract::{MAX_KEYS, encode, network};
use crate::rules::request::head::compared_token;
use crate::rules::request::text::{before_at, local_part, normalise};
use crate::rules::request::{CanonicalHost, CanonicalPath, text};

/// The value of all names that do not match their pattern. No request can send it, because of the NUL.
pub(super) const OTHER: &str = "\0(other)";

/// Behind a name: the value of all that read so and are spelt otherwise.
pub(super) const SPELT_OTHERWISE: &str = "\0";

/// The parts of a key. Without parts all requests share one key.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct KeySpec {
    pub parts: Vec<KeyPart>,
    /// The positions of parts that are user names, under any field name.
    pub names: Vec<usize>,
}

impl KeySpec {
    /// Whether the body may hold a part.
    pub fn needs_body(&self) -> bool {
        self.parts.iter().any(|part| part.selector.needs_body())
    }

    /// Whether each client has keys of its own for the accounts that it signs in to: a part is its address or device, and
    /// another one the user name of a login.
    pub fn is_login_of_client(&self) -> bool {
        let is_login = |part: &KeyPart| part.selector.needs_body() || part.selector == Selector::BasicUser;
        let has_login = self.names.iter().any(|&place| self.parts.get(place).is_some_and(is_login));
        has_login && self.parts.iter().any(|part| part.selector.subject() == SelectorSubject::Client)
    }

    /// The client in a key of this specification, as it is counted: its address, or its network.
    pub fn client_of<'k>(&self, key: &'k Key) -> Option<&'k [u8]> {
        let place = self.parts.iter().position(|part| matches!(part.selector, Selector::ClientIp(_)))?;
        key.parts().nth(place)
    }
}

impl KeyPart {
    /// The readings of a value that an operator wrote, in a list or on a command line: all readings that it has in a
    /// request.
    pub fn as_compared<'v>(&self, value: &'v str) -> Result<Readings<'v>, TooManyReadings> {
        let value = text::before(value);
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

    /// The readings of a value: each name that an application may read from it. `usual` is its usual spelling.
    pub(super) fn readings<'v>(&self, sent: &str, usual: Cow<'v, str>) -> Result<Readings<'v>, TooManyReadings> {
        let Spelling::Name(name) = &self.spelling else { return Ok(smallvec![usual]) };
        // A missing value is no name.
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

    /// Whether a value is a whole name, so that a success identifies the user. An address without its domain does not,
    /// and all names that do not match the pattern count as one.
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

    /// Whether a value is a whole name of one user only, in every application, so that a success belongs to that user.
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

    /// Whether all spellings of a name with this one reading belong to one person.
    fn is_one_mailbox(&self, reading: &str) -> bool {
        !self.local_part && self.fold.is_some_and(|fold| fold::is_one_mailbox(fold, reading))
    }
}

/// All that a value is compared as.
pub type Readings<'v> = SmallVec<[Cow<'v, str>; 1]>;

/// A value of one of the selectors of `first`.
pub(super) fn encode_choice(selector: &Selector, value: &str) -> String {
    let kind = selector.to_string();
    format!("{}:{kind}:{value}", kind.len())
}

// The values of `first`. Each names its selector, so that values of two selectors never share a key.

/// The selector of `first` that a value is of, and the value. `None`: the empty value.
pub(super) fn decode<'c, 'v>(choices: &'c [KeyPart], value: &'v [u8]) -> Option<(&'c KeyPart, &'v [u8])> {
    choices
        .iter()
        .find_map(|choice| Some((choice, value.strip_prefix(encode_choice(&choice.selector, "").as_bytes())?)))
}

// Keys of values that an operator wrote, in place of a request.

/// Why values make no key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum InvalidKeyValues {
    /// The key has no part of this name.
    Unknown(String),
    /// These parts have no value.
    Missing(Vec<String>),
    Repeated(String),
    /// The value of `client_ip` is no address.
    NotAnAddress,
    /// Applications may take a value for more names than are counted.
    TooManyReadings,
}

/// The keys of these pairs of a selector and a value, in any order, in the spelling in which requests are counted: one for each
/// name that an application may take the values for.
///
/// The empty value stands for requests without that part. `keeps_case` says whether a segment that a path captures
/// under a name is compared with case.
pub fn keys<'v>(
    spec: &KeySpec,
    values: &[(Cow<'v, str>, Cow<'v, str>)],
    keeps_case: impl Fn(&str) -> bool,
) -> Result<SmallVec<[Key; 1]>, InvalidKeyValues> {
    for (position, (name, _)) in values.iter().enumerate() {
        if !spec.parts.iter().any(|part| is_called(&part.selector, name)) {
            return Err(InvalidKeyValues::Unknown(name.clone().into_owned()));
        }
        // Header names are compared without case.
        let same = |other: &str| other == name || other.parse::<Selector>().ok() == name.parse::<Selector>().ok();
        if values[..position].iter().any(|(other, _)| same(other)) {
            return Err(InvalidKeyValues::Repeated(name.clone().into_owned()));
        }
    }
    let value = |part: &KeyPart| {
        // For `first`, the first choice that has a value.
        let named = |selector| values.iter().find(|(name, _)| is_called(selector, name));
        part.selector.choices().find_map(named)
    };
    let missing: Vec<_> = spec.parts.iter().filter(|part| value(part).is_none()).collect();
    if !missing.is_empty() {
        return Err(InvalidKeyValues::Missing(missing.iter().map(|part| name_of(&part.selector)).collect()));
    }
    let is_used = |name: &str| spec.parts.iter().any(|part| value(part).is_some_and(|(used, _)| used == name));
    if let Some((unused, _)) = values.iter().find(|(name, _)| !is_used(name)) {
        return Err(InvalidKeyValues::Repeated(unused.clone().into_owned()));
    }
    let mut keys: SmallVec<[Key; 1]> = smallvec![Key::default()];
    for (part, (name, value)) in spec.parts.iter().filter_map(|part| Some((part, value(part)?))) {
        let values: SmallVec<[Cow<'_, [u8]>; 1]> = match &part.selector {
            Selector::ClientIp(prefix) => {
                smallvec![Cow::Owned(encode(prefix.unwrap_or_default(), client(value)?).to_vec())]
            }
            Selector::First(choices) => of_first(choices, name, value, &keeps_case)?.into_iter().map(bytes).collect(),
            _ => compared(part, value, &keeps_case)?.into_iter().map(bytes).collect(),
        };
        let with_values = keys.iter().flat_map(|key| {
            values.iter().map(move |value| {
                let mut key = key.clone();
                key.push(value);
                key
            })
        });
        keys = with_values.collect();
        if keys.len() > MAX_KEYS {
            return Err(InvalidKeyValues::TooManyReadings);
        }
    }
    Ok(keys)
}

fn bytes(value: Cow<'_, str>) -> Cow<'_, [u8]> {
    match value {
        Cow::Borrowed(value) => Cow::Borrowed(value.as_bytes()),
        Cow::Owned(value) => Cow::Owned(value.into_bytes()),
    }
}

/// A value of the selector of `first` that is called `name`.
fn of_first<'v>(
    choices: &[KeyPart],
    name: &str,
    value: &str,
    keeps_case: &impl Fn(&str) -> bool,
) -> Result<Readings<'v>, InvalidKeyValues> {
    let choice = choices.iter().find(|choice| is_called(&choice.selector, name)).filter(|_| !value.is_empty());
    let Some(choice) = choice else { return Ok(smallvec![Cow::Borrowed("")]) };
    let encoded = |value: &str| Cow::Owned(encode_choice(&choice.selector, value));
    if let Selector::ClientIp(prefix) = choice.selector {
        return Ok(smallvec![encoded(&network(prefix.unwrap_or_default(), client(value)?).to_string())]);
    }
    Ok(compared(choice, value, keeps_case)?.iter().map(|reading| encoded(reading)).collect())
}

/// The form in which a value is compared in requests.
fn compared<'v>(
    part: &KeyPart,
    value: &'v str,
    keeps_case: &impl Fn(&str) -> bool,
) -> Result<Readings<'v>, InvalidKeyValues> {
    let value = match &part.selector {
        Selector::Header(_) | Selector::Bearer => value.trim_ascii(),
        _ => value,
    };
    let mut readings = part.as_compared(value).map_err(|_| InvalidKeyValues::TooManyReadings)?;
    if let Selector::Capture(name) = &part.selector
        && !keeps_case(name)
    {
        for reading in &mut readings {
            *reading = Cow::Owned(default_case_fold_str(reading));
        }
    }
    Ok(readings)
}

fn client(value: &str) -> Result<ClientIp, InvalidKeyValues> {
    let address: IpAddr = value.trim().parse().map_err(|_| InvalidKeyValues::NotAnAddress)?;
    Ok(ClientIp::new(address))
}

/// The name of a part of a key: its selector without options.
pub fn name_of(selector: &Selector) -> String {
    selector.to_string()
}

/// Whether `name` is a name of this selector.
pub fn is_called(selector: &Selector, name: &str) -> bool {
    match (selector, name.parse::<Selector>()) {
        (Selector::ClientIp(_), Ok(Selector::ClientIp(_))) => true,
        (Selector::First(choices), Ok(_)) => choices.iter().any(|choice| is_called(&choice.selector, name)),
        (selector, Ok(named)) => *selector == named,
        (_, Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::client::Prefix;
    use crate::rules::key::Spelling;

    fn spec(parts: &[&str]) -> KeySpec {
        let part = |text: &&str| KeyPart { selector: text.parse().unwrap(), spelling: Spelling::Usual };
        KeySpec { parts: parts.iter().map(part).collect(), ..KeySpec::default() }
    }

    #[track_caller]
    fn of(spec: &KeySpec, values: &[(&str, &str)]) -> Result<Key, InvalidKeyValues> {
        let values: Vec<_> = values.iter().map(|(name, value)| (Cow::Borrowed(*name), Cow::Borrowed(*value))).collect();
        keys(spec, &values, |_| false).map(|mut keys| {
            assert_eq!(keys.len(), 1);
            keys.remove(0)
        })
    }

    fn expected(parts: &[&[u8]]) -> Key {
        let mut key = Key::default();
        for part in parts {
            key.push(part);
        }
        key
    }

    #[test]
    fn values_are_spelt_as_those_of_requests() {
        assert_eq!(of(&spec(&[]), &[]), Ok(expected(&[])));
        assert_eq!(of(&spec(&["param.username"]), &[("param.username", " ALICE ")]), Ok(expected(&[b"alice"])));
        assert_eq!(of(&spec(&["header.x-key"]), &[("header.X-Key", " Abc ")]), Ok(expected(&[b"Abc"])));
        assert_eq!(of(&spec(&["host"]), &[("host", "Example.COM:80")]), Ok(expected(&[b"example.com"])));
        assert_eq!(of(&spec(&["method"]), &[("method", "post")]), Ok(expected(&[b"POST"])));
        assert_eq!(of(&spec(&["path"]), &[("path", "//A/../Login/")]), Ok(expected(&[b"/login"])));
        assert_eq!(of(&spec(&["path.id"]), &[("path.id", "Abc")]), Ok(expected(&[b"abc"])));
        assert_eq!(of(&spec(&["query.a"]), &[("query.a", "Abc")]), Ok(expected(&[b"Abc"])));
        assert_eq!(of(&spec(&["param.username"]), &[("param.username", "")]), Ok(expected(&[b""])));
    }

    #[test]
    fn addresses_are_cut_to_the_net_of_the_key() {
        let wide = KeyPart { selector: Selector::ClientIp(Some(Prefix { v4: 24, v6: 48 })), spelling: Spelling::Usual };
        let spec = KeySpec { parts: vec![wide], ..KeySpec::default() };
        let ip = |address: &str| of(&spec, &[("client_ip", address)]);
        assert_eq!(ip("198.51.100.7"), ip("::ffff:198.51.100.99"));
        assert_ne!(ip("198.51.100.7"), ip("198.51.101.7"));
        assert_eq!(ip("2001:db8:1::1"), ip("2001:db8:1:2::1"));
        assert_eq!(ip("198.51.100.0/24"), Err(InvalidKeyValues::NotAnAddress));
    }

    #[test]
    fn of_first_the_operator_names_one() {
        let choices = ["user", "client_ip", "param.name"].map(|text| spec(&[text]).parts.remove(0));
        let first = KeyPart { selector: Selector::First(choices.into()), spelling: Spelling::Usual };
        let spec = KeySpec { parts: vec![first], ..KeySpec::default() };
        assert_eq!(of(&spec, &[("user", "00ff")]), Ok(expected(&[b"4:user:00ff"])));
        assert_eq!(of(&spec, &[("client_ip", "192.0.2.1")]), Ok(expected(&[b"9:client_ip:192.0.2.1/32"])));
        assert_eq!(of(&spec, &[("param.name", "ALICE")]), Ok(expected(&[b"10:param.name:alice"])));
        assert_eq!(of(&spec, &[("user", "")]), Ok(expected(&[b""])));
        let missing = InvalidKeyValues::Missing(vec!["first(user, client_ip, param.name)".to_owned()]);
        assert_eq!(of(&spec, &[]), Err(missing));
        let twice = of(&spec, &[("user", "00ff"), ("client_ip", "192.0.2.1")]);
        assert_eq!(twice, Err(InvalidKeyValues::Repeated("client_ip".to_owned())));
    }

    #[test]
    fn every_part_has_one_value_and_there_is_no_other() {
        let spec = spec(&["client_ip", "param.username"]);
        let missing = InvalidKeyValues::Missing(vec!["param.username".to_owned()]);
        assert_eq!(of(&spec, &[("client_ip", "10.0.0.1")]), Err(missing));
        let unknown = InvalidKeyValues::Unknown("param.user".to_owned());
        assert_eq!(of(&spec, &[("client_ip", "10.0.0.1"), ("param.user", "a")]), Err(unknown));
        let repeated = InvalidKeyValues::Repeated("client_ip".to_owned());
        assert_eq!(of(&spec, &[("client_ip", "10.0.0.1"), ("client_ip", "10.0.0.2")]), Err(repeated));
        let repeated = InvalidKeyValues::Repeated("header.X-Key".to_owned());
        assert_eq!(of(&self::spec(&["header.x-key"]), &[("header.x-key", "a"), ("header.X-Key", "b")]), Err(repeated));
        let one_way = of(&spec, &[("client_ip", "10.0.0.1"), ("param.username", "a")]);
        let other_way = of(&spec, &[("param.username", "a"), ("client_ip", "10.0.0.1")]);
        assert_eq!(one_way, other_way);
    }

    #[test]
    fn a_value_says_of_which_selector_it_is() {
        let part = |text: &str| KeyPart { selector: text.parse().expect("a selector"), spelling: Spelling::Usual };
        let choices = [part("query.a"), part("query.a:b"), part("host")];
        for choice in &choices {
            for value in ["", "x", "b:x", "7:query.a:x"] {
                let encoded = encode_choice(&choice.selector, value);
                assert_eq!(decode(&choices, encoded.as_bytes()), Some((choice, value.as_bytes())));
            }
        }
        assert_eq!(decode(&choices, b""), None);
    }
}
