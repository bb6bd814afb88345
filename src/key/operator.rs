//! Keys of values that an operator wrote, in place of a request.

use std::borrow::Cow;
use std::net::IpAddr;

use caseless::default_case_fold_str;
use smallvec::SmallVec;
use smallvec::smallvec;

use super::Key;
use super::KeyPart;
use super::KeySpec;
use super::Selector;
use super::extract::MAX_KEYS;
use super::extract::encode;
use super::extract::network;
use super::first;
use super::spec::Readings;
use crate::client::ClientIp;

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
        // Header names are equal whatever their case.
        let same = |other: &str| other == name || other.parse::<Selector>().ok() == name.parse::<Selector>().ok();
        if values[..position].iter().any(|(other, _)| same(other)) {
            return Err(InvalidKeyValues::Repeated(name.clone().into_owned()));
        }
    }
    let value = |part: &KeyPart| {
        // Of `first`, the first that has a value.
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
    let encoded = |value: &str| Cow::Owned(first::encode(&choice.selector, value));
    if let Selector::ClientIp(prefix) = choice.selector {
        return Ok(smallvec![encoded(&network(prefix.unwrap_or_default(), client(value)?).to_string())]);
    }
    Ok(compared(choice, value, keeps_case)?.iter().map(|reading| encoded(reading)).collect())
}

/// What a value is compared as in requests.
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
    use crate::client::Prefix;
    use crate::key::Spelling;

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
        let one_way = of(&spec, &[("client_ip", "10.0.0.1"), ("param.username", "a")]);
        let other_way = of(&spec, &[("param.username", "a"), ("client_ip", "10.0.0.1")]);
        assert_eq!(one_way, other_way);
    }
}
