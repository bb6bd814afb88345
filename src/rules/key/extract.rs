//! Applies selectors to a request, and makes the keys that it is counted under.

use std::borrow::Cow;
use std::net::IpAddr;

use ipnet::IpNet;
use smallvec::{SmallVec, smallvec};

use super::fold::TooManyReadings;
use super::spec::OTHER;
use super::{Identity, Key, KeyPart, KeySpec, Selector, Spelling};
use crate::rules::client::{ClientIp, DeviceId, Prefix};
use crate::rules::key::{spec, undisputed};
use crate::rules::request::head::{
    basic_users, bearer_tokens, body_overrides, head_overrides, header_values, methods_in,
};
use crate::rules::request::query::cookie_values;
use crate::rules::request::text::is_blank;
use crate::rules::request::{BodyFields, CanonicalHead, NotUnderstood, text};

/// The parts of a request that selectors read.
#[derive(Clone, Copy, Debug)]
pub struct ValueSource<'a> {
    pub head: &'a CanonicalHead<'a>,
    pub fields: &'a BodyFields,
    /// The names of the routes that the request may take.
    pub routes: &'a [&'a str],
    /// The captures of the path patterns of those routes.
    pub captures: &'a [Capture<'a>],
    /// The device whose cookie is valid for the user name in the request.
    pub device: Option<DeviceId>,
    /// The account and claims that sessions and verified tokens prove.
    pub identity: Identity<'a>,
}

impl<'a> ValueSource<'a> {
    /// A request with only a head and fields: no routes, no captures, no identity.
    pub fn new(head: &'a CanonicalHead<'a>, fields: &'a BodyFields) -> Self {
        Self { head, fields, routes: &[], captures: &[], device: None, identity: Identity::default() }
    }
}

/// A segment that a path pattern captured: its name in the pattern, and its value in the request.
pub type Capture<'a> = (&'a str, Cow<'a, str>);

/// All captures of one request.
pub type Captures<'a> = SmallVec<[Capture<'a>; 2]>;

/// The keys of one request under one specification. Several when the client sent a field several times.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExtractedKeys {
    pub keys: SmallVec<[ExtractedKey; 1]>,
    /// Whether a part is missing, unreadable, or empty.
    pub absent: bool,
    /// Why a part is not understood.
    pub unread: Option<NotUnderstood>,
}

/// One key, and whether one of its parts is the empty value.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExtractedKey {
    pub key: Key,
    pub missing: bool,
    /// Whether one of its parts is surely not there. One that was not understood may be there.
    pub surely_missing: bool,
    /// Whether it is the key of all names that do not match a `pattern`.
    pub is_unmatched: bool,
}

/// The different values of one part. There is at least one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PartValues<'a> {
    pub values: SmallVec<[Cow<'a, str>; 2]>,
    /// Whether the part is missing, unreadable, or empty.
    pub absent: bool,
    /// Why there may be other values.
    pub unread: Option<NotUnderstood>,
}

/// The client sent a field more often than an honest client does.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a field was sent more than {MAX_VALUES} times")]
pub struct TooManyValues;

/// More values than this of one field are an attack, not a form.
pub const MAX_VALUES: usize = 8;

/// Two fields sent that often. More combinations are an attack too.
pub const MAX_KEYS: usize = MAX_VALUES * MAX_VALUES;

/// Every key that `spec` makes of a request: all combinations of the values of its parts.
pub fn keys(spec: &KeySpec, source: &ValueSource<'_>) -> Result<ExtractedKeys, TooManyValues> {
    let mut extracted = ExtractedKeys { keys: smallvec![ExtractedKey::default()], ..ExtractedKeys::default() };
    for part in &spec.parts {
        if let Selector::ClientIp(prefix) = part.selector {
            let encoded = encode(prefix.unwrap_or_default(), source.head.client);
            extracted.keys.iter_mut().for_each(|candidate| candidate.key.push(&encoded));
            continue;
        }
        let PartValues { values, absent, unread } = values(part, source)?;
        extracted.absent |= absent;
        extracted.unread = extracted.unread.or(unread);
        if values.len() * extracted.keys.len() > MAX_KEYS {
            return Err(TooManyValues);
        }
        if let [value] = &values[..] {
            extracted.keys.iter_mut().for_each(|candidate| candidate.extend(value, unread));
            continue;
        }
        let so_far = std::mem::take(&mut extracted.keys);
        for (candidate, value) in so_far.iter().flat_map(|key| values.iter().map(move |value| (key, value))) {
            let mut candidate = candidate.clone();
            candidate.extend(value, unread);
            extracted.keys.push(candidate);
        }
    }
    Ok(extracted)
}

/// The values that `distinct` counts, as they are compared: one key for each.
pub fn distinct(part: &KeyPart, source: &ValueSource<'_>) -> Result<ExtractedKeys, TooManyValues> {
    keys(&KeySpec { parts: vec![part.clone()], ..KeySpec::default() }, source)
}

/// The client cut to a prefix, as `client_ip` makes a key of it.
pub fn client(prefix: Prefix, source: &ValueSource<'_>) -> Key {
    let mut key = Key::default();
    key.push(&encode(prefix, source.head.client));
    key
}

/// The values of one part of a key. A missing part has the empty value. A part that is not understood has the found
/// values and the empty value.
pub fn values<'a>(part: &'a KeyPart, source: &ValueSource<'a>) -> Result<PartValues<'a>, TooManyValues> {
    if source.head.path.may_be_any() && part.selector.choices().any(Selector::is_of_path) {
        return Err(TooManyValues);
    }
    let Found { mut values, is_repeated } = found(part, source)?;
    // A request is charged once for each key, so it must not try one name twice.
    if is_repeated && part.selector.needs_body() && source.fields.is_multicall() {
        return Err(TooManyValues);
    }
    let empty = values.iter().any(|value| value.is_empty());
    let absent = empty || values.is_empty();
    let unread = not_understood(part, source);
    if !empty && (values.is_empty() || unread.is_some()) {
        values.push(Cow::Borrowed(""));
    }
    Ok(PartValues { values, absent, unread })
}

/// The values found for a part.
#[derive(Default)]
struct Found<'a> {
    values: SmallVec<[Cow<'a, str>; 2]>,
    /// Whether a value was sent twice, perhaps in another spelling.
    is_repeated: bool,
}

fn found<'a>(part: &'a KeyPart, source: &ValueSource<'a>) -> Result<Found<'a>, TooManyValues> {
    if part.has_readings() {
        return found_readings(part, source);
    }
    let Found { mut values, mut is_repeated } = Found::default();
    let most = most_values(part);
    each_value(part, source, &mut |value| {
        // One value beyond the bound is enough to deny.
        if values.contains(&value) {
            is_repeated = true;
        } else if values.len() <= most {
            values.push(value);
        }
    });
    if values.len() > most { Err(TooManyValues) } else { Ok(Found { values, is_repeated }) }
}

/// The readings of all values. Only values that differ in their usual spelling count against the bound.
fn found_readings<'a>(part: &'a KeyPart, source: &ValueSource<'a>) -> Result<Found<'a>, TooManyValues> {
    let mut sent: SmallVec<[Cow<'a, str>; 2]> = SmallVec::new();
    let Found { mut values, mut is_repeated } = Found::default();
    let most = most_values(part);
    let mut spelt_otherwise = 0;
    let mut refused = false;
    each_as_sent(&part.selector, source, &mut |value| {
        let usual = part.spelt(value.clone());
        if sent.contains(&usual) {
            is_repeated = true;
            // Applications differ in how they read letters beyond ASCII.
            if value.is_ascii() {
                return;
            }
            spelt_otherwise += 1;
        } else {
            sent.push(usual.clone());
        }
        refused |= sent.len() > most || spelt_otherwise > MAX_KEYS || values.len() > MAX_KEYS;
        if refused {
            return;
        }
        match part.readings(&value, usual) {
            Ok(readings) => {
                for reading in readings {
                    if !values.contains(&reading) {
                        values.push(reading);
                    }
                }
            }
            Err(TooManyReadings) => refused = true,
        }
    });
    if refused || values.len() > MAX_KEYS { Err(TooManyValues) } else { Ok(Found { values, is_repeated }) }
}

/// How many different values a part may have. The client does not choose how many a verified claim has.
fn most_values(part: &KeyPart) -> usize {
    if part.selector.is_verified() { MAX_KEYS } else { MAX_VALUES }
}

/// Why some application may read a value of a part that the gateway has not found.
pub fn not_understood(part: &KeyPart, source: &ValueSource<'_>) -> Option<NotUnderstood> {
    let ValueSource { head, fields, .. } = *source;
    if let Selector::First(choices) = &part.selector {
        return taken(choices, source).iter().find_map(|choice| not_understood(choice, source));
    }
    if let Selector::Jwt(path) = &part.selector {
        return source.identity.claims.may_hide(path).then_some(NotUnderstood::Credentials);
    }
    if part.selector == Selector::User {
        return source.identity.unread_users;
    }
    let judged = undisputed::judge(&part.selector, head, fields).err();
    judged.or_else(|| has_long_value(part, source).then_some(NotUnderstood::LongValue))
}

/// Whether a name is so long that it is compared only in part.
fn has_long_value(part: &KeyPart, source: &ValueSource<'_>) -> bool {
    let is_long = |text: &[u8]| text.len() > text::MAX_LENGTH;
    let is_cut = match part.spelling {
        Spelling::AsSent => false,
        Spelling::Usual => part.selector.normalises(),
        Spelling::LocalPart | Spelling::Name(_) => true,
    };
    if !is_cut
        || !(source.head.query.readings().any(|query| is_long(query.as_bytes())) || source.fields.texts().any(is_long))
    {
        return false;
    }
    let mut found = false;
    each_as_sent(&part.selector, source, &mut |value| found |= is_long(value.as_bytes()));
    found
}

/// Calls `found` with everything that the values of a part are compared as, also with repeated values.
pub fn each_value<'a>(part: &'a KeyPart, source: &ValueSource<'a>, found: &mut dyn FnMut(Cow<'a, str>)) {
    if !part.has_readings() {
        return each_as_sent(&part.selector, source, &mut |value| found(part.spelt(value)));
    }
    each_as_sent(&part.selector, source, &mut |value| match part.readings(&value, part.spelt(value.clone())) {
        Ok(readings) => readings.into_iter().for_each(&mut *found),
        // On no list, and in a key the budget of all such values.
        Err(TooManyReadings) => found(Cow::Borrowed(OTHER)),
    });
}

/// Calls `found` with every value of a selector, as it was sent.
pub(super) fn each_as_sent<'a>(selector: &'a Selector, source: &ValueSource<'a>, found: &mut dyn FnMut(Cow<'a, str>)) {
    let ValueSource { head, fields, routes, captures, device, identity } = *source;
    match selector {
        Selector::ClientIp(prefix) => found(Cow::Owned(prefix.unwrap_or_default().cut(head.client).to_string())),
        Selector::Header(name) => header_values(head.fields, name).for_each(found),
        Selector::Cookie(name) => cookie_values(head.fields, name).for_each(found),
        Selector::Query(name) => head.query.values(name).for_each(|value| {
            // Some applications trim it.
            let trimmed = value.trim_matches(is_blank);
            let trimmed = (trimmed.len() < value.len()).then(|| Cow::Owned(trimmed.to_owned()));
            [Some(value), trimmed].into_iter().flatten().for_each(&mut *found);
        }),
        Selector::Capture(name) => {
            let named = captures.iter().filter(|(captured, _)| *captured == &**name);
            named.flat_map(|(_, value)| text::readings(Cow::Borrowed(value))).for_each(found);
        }
        Selector::Form(name) => fields.form(name).for_each(found),
        Selector::Json(path) => fields.json(path).for_each(found),
        Selector::Xml(path) => fields.xml(path).for_each(found),
        Selector::Param(name) => {
            head.query.values(name).for_each(&mut *found);
            fields.form(name).for_each(&mut *found);
            fields.json(name).for_each(&mut *found);
            fields.element(name).for_each(found);
        }
        Selector::Bearer => bearer_tokens(head.fields).for_each(found),
        Selector::BasicUser => basic_users(head.fields).map(Cow::Owned).for_each(found),
        Selector::Host => found(Cow::Borrowed(head.host.as_str())),
        Selector::Method => {
            found(upper_case(head.method.as_str()));
            // Requests with another method have another key, but an override must not give one act two budgets.
            for overrides in [head_overrides(head), body_overrides(fields)] {
                methods_in(&overrides).for_each(|method| found(Cow::Owned(method.to_ascii_uppercase())));
            }
        }
        Selector::Path => {
            found(Cow::Borrowed(head.path.canonical().folded()));
            head.path.readings().iter().for_each(|reading| found(Cow::Borrowed(reading.folded())));
        }
        Selector::Route => routes.iter().for_each(|name| found(Cow::Borrowed(name))),
        // A request has no descriptors: limits of domains are decided apart.
        Selector::Descriptor(_) => {}
        Selector::User => identity.users.iter().for_each(|user| found(Cow::Borrowed(user.as_str()))),
        Selector::Jwt(path) => identity.claims.values(path).for_each(|value| found(Cow::Borrowed(value))),
        Selector::First(choices) => each_of_first(choices, source, found),
        Selector::Device => found(device.map_or(Cow::Borrowed(UNTRUSTED), |device| Cow::Owned(device.to_string()))),
    }
}

/// Calls `found` with the values of the first choice that is certainly there, and of the earlier choices that may be
/// there. Calls it with the empty value if there is no choice, or if a part that is not understood may hide one.
fn each_of_first<'a>(choices: &'a [KeyPart], source: &ValueSource<'a>, found: &mut dyn FnMut(Cow<'a, str>)) {
    for choice in choices {
        if is_certain(choice, source, found) {
            return;
        }
        if not_understood(choice, source).is_some() {
            found(Cow::Borrowed(""));
        }
    }
    found(Cow::Borrowed(""));
}

/// Calls `found` with the values of one choice of `first`, and says whether every application finds one there.
fn is_certain<'a>(choice: &'a KeyPart, source: &ValueSource<'a>, found: &mut dyn FnMut(Cow<'a, str>)) -> bool {
    if let Selector::ClientIp(prefix) = choice.selector {
        let network = network(prefix.unwrap_or_default(), source.head.client);
        found(Cow::Owned(spec::encode_choice(&choice.selector, &network.to_string())));
        return true;
    }
    let (mut is_there, mut is_empty) = (false, false);
    each_value(choice, source, &mut |value| {
        if value.is_empty() {
            is_empty = true;
        } else {
            is_there = true;
            found(Cow::Owned(spec::encode_choice(&choice.selector, &value)));
        }
    });
    is_there && !is_empty && not_understood(choice, source).is_none()
}

/// Whether no application finds a value of this part.
pub(super) fn is_surely_missing(part: &KeyPart, source: &ValueSource<'_>) -> bool {
    values(part, source).is_ok_and(|found| found.absent && found.unread.is_none())
}

/// The choices of `first` whose values count for a request.
pub(super) fn taken<'c>(choices: &'c [KeyPart], source: &ValueSource<'_>) -> &'c [KeyPart] {
    let certain = choices.iter().position(|choice| is_certain(choice, source, &mut |_| {}));
    certain.map_or(choices, |last| &choices[..=last])
}

/// The network that a client is counted by.
pub(super) fn network(prefix: Prefix, client: ClientIp) -> IpNet {
    let address = prefix.cut(client);
    let bits = if address.is_ipv4() { prefix.v4 } else { prefix.v6 };
    IpNet::new(address, bits).unwrap_or_else(|_| address.into())
}

impl ExtractedKey {
    fn extend(&mut self, value: &str, unread: Option<NotUnderstood>) {
        self.key.push(value.as_bytes());
        self.missing |= value.is_empty();
        self.surely_missing |= value.is_empty() && unread.is_none();
        self.is_unmatched |= value == OTHER;
    }
}

/// The one value for all devices without a valid cookie.
const UNTRUSTED: &str = "untrusted";

/// The prefix, then the address cut to it: the same address under another prefix is another key.
pub(super) fn encode(prefix: Prefix, client: ClientIp) -> SmallVec<[u8; 17]> {
    match prefix.cut(client) {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            SmallVec::from_slice(&[prefix.v4, a, b, c, d])
        }
        IpAddr::V6(address) => {
            let mut encoded = [prefix.v6; 17];
            encoded[1..].copy_from_slice(&address.octets());
            SmallVec::from_buf(encoded)
        }
    }
}

fn upper_case(method: &str) -> Cow<'_, str> {
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Cow::Owned(method.to_ascii_uppercase())
    } else {
        Cow::Borrowed(method)
    }
}

#[cfg(test)]
mod tests;
