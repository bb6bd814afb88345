//! Keys for logs and operators: the selectors, and as much of the values as each place allows.

use std::borrow::Cow;
use std::net::IpAddr;

use ipnet::IpNet;

use super::spec::{OTHER, SPELT_OTHERWISE};
use super::{Key, KeyHasher, KeyPart, KeySpec, Selector, SelectorSubject};
use crate::rules::key::spec;

/// A key in a form that can be shown.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DisplayKey {
    /// Each selector with its masked value, which only distinguishes it from others. May be written anywhere.
    pub masked: Vec<(String, String)>,
    /// The key with addresses and user names in clear, for operators who may lift a ban. It never leaves this process,
    /// so a key from another gateway has none.
    pub clear: Option<Vec<(String, String)>>,
    /// The networks of clients in the key, each with the place of its part. Leaves this gateway only encrypted.
    pub networks: Vec<(usize, IpNet)>,
}

impl DisplayKey {
    /// `key` has the parts of `spec`, in the same order. `shown` makes the digits that distinguish masks.
    pub fn of(spec: &KeySpec, key: &Key, shown: &KeyHasher) -> Self {
        let mut named = Self::default();
        let mut clear = Vec::with_capacity(spec.parts.len());
        for (place, (part, value)) in spec.parts.iter().zip(key.parts()).enumerate() {
            let seen = SeenPart::of(part, value, spec.names.contains(&place), shown);
            named.networks.extend(seen.network.map(|network| (place, network)));
            named.masked.push((seen.selector.clone(), seen.masked));
            clear.push((seen.selector, seen.clear));
        }
        named.clear = Some(clear);
        named
    }

    /// `client_ip=198.51.*.* param.username=a***1f3c`, on one line. Empty for a key without parts.
    pub fn masked_words(&self) -> String {
        let words: Vec<_> = self.masked.iter().map(|(selector, value)| format!("{selector}={value}")).collect();
        words.join(" ")
    }

    /// The network, where the key is only the address of a client.
    pub fn address(&self) -> Option<IpNet> {
        let [(_, network)] = self.networks[..] else { return None };
        (self.masked.len() == 1).then_some(network)
    }

    /// A key that another process has sent, with these networks. Parts that its mask hides are left out.
    #[must_use]
    pub fn with_networks(self, mut networks: Vec<(usize, IpNet)>) -> Self {
        networks.retain(|(place, network)| {
            self.masked.get(*place).is_some_and(|(_, masked)| *masked == mask_network(*network))
        });
        Self { networks, ..self }
    }

    /// The values for operators who may lift a ban. Where another gateway saw the key, only its addresses are in clear.
    pub fn for_operators(&self) -> Cow<'_, [(String, String)]> {
        if let Some(clear) = &self.clear {
            return Cow::Borrowed(clear);
        }
        let mut parts = Cow::Borrowed(&self.masked[..]);
        for (place, network) in &self.networks {
            if let Some((_, value)) = parts.to_mut().get_mut(*place) {
                *value = plain(*network);
            }
        }
        parts
    }
}

/// A key as the admin API shows it: addresses in clear, tokens and cookies masked, user names as the place allows.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OperatorKey {
    pub parts: Vec<OperatorPart>,
}

/// One part of a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OperatorPart {
    pub selector: String,
    /// At most [`MAX_SHOWN`] characters. Never leaves this process where `masked` is there.
    pub value: String,
    /// The value where this process is not asked itself; `None`: as here.
    pub masked: Option<String>,
}

/// How much of a value is shown, in characters.
pub const MAX_SHOWN: usize = 80;

impl OperatorKey {
    /// `key` has the parts of `spec`, in the same order. `shown` makes the digits that distinguish masks.
    pub fn of(spec: &KeySpec, key: &Key, shown: &KeyHasher) -> Self {
        let part = |(place, (part, value)): (usize, (&KeyPart, &[u8]))| {
            let is_name = spec.names.contains(&place);
            let SeenPart { selector, clear, masked, is_name, .. } = SeenPart::of(part, value, is_name, shown);
            OperatorPart { selector, value: shortened(clear), masked: is_name.then_some(masked) }
        };
        Self { parts: spec.parts.iter().zip(key.parts()).enumerate().map(part).collect() }
    }

    /// Whether a part of it is the name of a user.
    pub fn has_name(&self) -> bool {
        self.parts.iter().any(|part| part.masked.is_some())
    }

    /// The key of a client, as the network that it is counted by.
    pub fn of_client(network: IpNet) -> Self {
        let selector = Selector::ClientIp(None).to_string();
        Self { parts: vec![OperatorPart { selector, value: plain(network), masked: None }] }
    }
}

/// A value of a part in clear, as an operator reads it: of `first` with its selector.
pub fn in_clear(part: &KeyPart, value: &str) -> String {
    if let Selector::First(choices) = &part.selector
        && let Some((choice, value)) = spec::decode(choices, value.as_bytes())
    {
        return format!("{}={}", choice.selector, in_clear(choice, &text(value)));
    }
    match value.strip_suffix(SPELT_OTHERWISE) {
        _ if value == OTHER => OTHER.trim_start_matches('\0').to_owned(),
        Some(name) => format!("{name}~"),
        None => value.to_owned(),
    }
}

/// One part of a key, as it may be seen.
struct SeenPart {
    /// The selector that yielded the value; one of the choices of `first`.
    selector: String,
    clear: String,
    masked: String,
    network: Option<IpNet>,
    /// Whether the value is a user name.
    is_name: bool,
}

impl SeenPart {
    /// `is_name`: the configuration says that the part is a user name.
    fn of(part: &KeyPart, value: &[u8], is_name: bool, shown: &KeyHasher) -> Self {
        match &part.selector {
            Selector::ClientIp(_) => Self::of_client(network(value)),
            Selector::First(choices) => match spec::decode(choices, value) {
                Some((KeyPart { selector: Selector::ClientIp(_), .. }, network)) => {
                    Self::of_client(text(network).parse().ok())
                }
                Some((choice, value)) => Self::of_value(&choice.selector, value, is_name, shown),
                None => Self::of_value(&part.selector, value, is_name, shown),
            },
            selector => Self::of_value(selector, value, is_name, shown),
        }
    }

    fn of_client(network: Option<IpNet>) -> Self {
        let (masked, clear) = network.map(|network| (mask_network(network), plain(network))).unwrap_or_default();
        Self { selector: Selector::ClientIp(None).to_string(), clear, masked, network, is_name: false }
    }

    fn of_value(selector: &Selector, value: &[u8], is_name: bool, shown: &KeyHasher) -> Self {
        if value == OTHER.as_bytes() {
            let other = OTHER.trim_start_matches('\0').to_owned();
            let (clear, masked) = (other.clone(), other);
            return Self { selector: selector.to_string(), clear, masked, network: None, is_name: false };
        }
        if let Some(name) = value.strip_suffix(SPELT_OTHERWISE.as_bytes()).filter(|name| !name.is_empty()) {
            let mut seen = Self::of_value(selector, name, is_name, shown);
            seen.clear.push('~');
            seen.masked.push('~');
            return seen;
        }
        let is_name = names_a_user(selector) || is_name && may_be_a_name(selector);
        let is_public = selector.subject() == SelectorSubject::Request || *selector == Selector::User;
        let masked = match () {
            () if is_public => text(value),
            () if is_name => mask(value, 1, Some(shown)),
            () => mask_other(selector, value, shown),
        };
        let clear = if is_name { text(value) } else { masked.clone() };
        Self { selector: selector.to_string(), clear, masked, network: None, is_name }
    }
}

fn shortened(value: String) -> String {
    match value.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
    }
}

/// How a selector tells whether its values are secret.
enum Secrecy<'s> {
    /// Knowing the value is enough to use it.
    Credential,
    /// Free text of the client, in a field of this name.
    ByFieldName(&'s str),
    /// Knowing the value gives no access.
    Public,
}

fn secrecy(selector: &Selector) -> Secrecy<'_> {
    match selector {
        Selector::Bearer | Selector::Cookie(_) | Selector::Header(_) => Secrecy::Credential,
        Selector::Query(name)
        | Selector::Capture(name)
        | Selector::Form(name)
        | Selector::Json(name)
        | Selector::Xml(name)
        | Selector::Param(name)
        | Selector::Descriptor(name) => Secrecy::ByFieldName(name),
        Selector::ClientIp(_)
        | Selector::BasicUser
        | Selector::Host
        | Selector::Method
        | Selector::Path
        | Selector::Route
        | Selector::Device
        | Selector::User
        | Selector::Jwt(_)
        | Selector::First(_) => Secrecy::Public,
    }
}

/// Whether knowing the value may be enough to use it, by the selector or by the name of the field.
fn may_hold_a_secret(selector: &Selector) -> bool {
    match secrecy(selector) {
        Secrecy::Credential => true,
        Secrecy::ByFieldName(name) => {
            contains_any(name, &["pass", "pwd", "secret", "token", "key", "code", "pin", "otp"])
        }
        Secrecy::Public => false,
    }
}

/// Whether the value may be short enough to guess: a reader of the log could try guesses against digits of a hash.
fn may_hold_a_password(selector: &Selector) -> bool {
    let words = ["pass", "pwd", "secret", "code", "pin", "otp"];
    matches!(secrecy(selector), Secrecy::ByFieldName(name) if contains_any(name, &words))
}

/// Whether the field holds a user name, or a descriptor the address of a client. Operators see both in clear.
fn names_a_user(selector: &Selector) -> bool {
    let is_descriptor = matches!(selector, Selector::Descriptor(_));
    if is_descriptor && selector.subject() == SelectorSubject::Client {
        return true;
    }
    (selector.normalises() || is_descriptor || selector.is_verified())
        && match secrecy(selector) {
            Secrecy::Credential => false,
            Secrecy::ByFieldName(name) => {
                contains_any(name, &["user", "name", "login", "mail", "account"]) && !may_hold_a_secret(selector)
            }
            Secrecy::Public => true,
        }
}

/// Whether the configuration may say that the value is a user name: it is no credential, by the selector or by the whole name
/// of the field.
fn may_be_a_name(selector: &Selector) -> bool {
    let is_secret = |name: &str| {
        contains_any(name, &["password", "passwd", "pwd", "secret", "token", "otp"])
            || ["pass", "pin", "code", "key"].iter().any(|word| name.eq_ignore_ascii_case(word))
    };
    match secrecy(selector) {
        Secrecy::Credential => false,
        Secrecy::ByFieldName(name) => !is_secret(name),
        Secrecy::Public => selector.subject() == SelectorSubject::Account,
    }
}

fn contains_any(name: &str, words: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// An address, or a network with its prefix length.
fn plain(network: IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() { network.addr().to_string() } else { network.to_string() }
}

/// The first letters, three asterisks for any length, and digits that distinguish it from other values: `a***1f3c`.
/// Empty for an empty value.
fn mask(value: &[u8], letters: usize, shown: Option<&KeyHasher>) -> String {
    if value.is_empty() {
        return String::new();
    }
    let text = String::from_utf8_lossy(value);
    let start: String = text.chars().filter(|letter| !letter.is_control()).take(letters).collect();
    let digits = shown.map(|shown| shown.digits(value)).unwrap_or_default();
    format!("{start}***{digits}")
}

/// The mask of a value that is neither an address nor a user name.
fn mask_other(selector: &Selector, value: &[u8], shown: &KeyHasher) -> String {
    let letters = usize::from(!may_hold_a_secret(selector));
    let digits = Some(shown).filter(|_| !may_hold_a_password(selector));
    mask(value, letters, digits)
}

/// The network of a `client_ip` in a key: the prefix length, then the address.
fn network(value: &[u8]) -> Option<IpNet> {
    let (prefix, octets) = value.split_first()?;
    let (address, bits) = match octets.len() {
        4 => (IpAddr::from(<[u8; 4]>::try_from(octets).ok()?), 32),
        16 => (IpAddr::from(<[u8; 16]>::try_from(octets).ok()?), 128),
        _ => return None,
    };
    IpNet::new(address, (*prefix).min(bits)).ok()
}

/// `198.51.*.*` or `2001:db8:*`
fn mask_network(network: IpNet) -> String {
    match network.network() {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            format!("{a}.{b}.*.*")
        }
        IpAddr::V6(address) => {
            let [a, b, ..] = address.segments();
            format!("{a:x}:{b:x}:*")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::client::{ClientIp, Prefix};
    use crate::rules::key::Spelling;
    use crate::rules::key::extract::encode;

    #[track_caller]
    fn check(parts: &[(&str, &[u8])], expected: &[(&str, &str)], address: Option<&str>) {
        let mut key = Key::default();
        let mut spec = KeySpec::default();
        for (selector, value) in parts {
            spec.parts.push(KeyPart { selector: selector.parse().unwrap(), spelling: Spelling::Usual });
            key.push(value);
        }
        let named = DisplayKey::of(&spec, &key, &KeyHasher::new([7; 16]));
        let (shown, masked) = (named.address(), named.masked);
        // The digits that tell masks apart are another test's.
        let plain = |value: &str| value.split_once("***").map_or(value.to_owned(), |(start, _)| format!("{start}***"));
        let masked: Vec<_> = masked.iter().map(|(selector, value)| (&**selector, plain(value))).collect();
        let parts: Vec<_> = masked.iter().map(|(selector, value)| (*selector, &**value)).collect();
        assert_eq!((parts, shown), (expected.to_vec(), address.map(|address| address.parse().unwrap())));
    }

    fn ip(address: &str, v4: u8) -> Vec<u8> {
        encode(Prefix { v4, v6: 64 }, ClientIp::new(address.parse().unwrap())).to_vec()
    }

    #[test]
    fn names_keep_their_first_letter_and_secrets_nothing() {
        check(&[("param.username", b"alice")], &[("param.username", "a***")], None);
        check(&[("param.username", "élise".as_bytes())], &[("param.username", "é***")], None);
        check(&[("param.username", b"")], &[("param.username", "")], None);
        check(
            &[("param.password", b"hunter2"), ("query.page", b"7a")],
            &[("param.password", "***"), ("query.page", "7***")],
            None,
        );
        check(&[("bearer", b"abc"), ("cookie.s", b"x")], &[("bearer", "***"), ("cookie.s", "***")], None);
        check(&[("path", b"/login")], &[("path", "/login")], None);
        check(&[("descriptor.generic_key", b"slow")], &[("descriptor.generic_key", "slow")], None);
        check(&[("descriptor.user", b"bob")], &[("descriptor.user", "b***")], None);
        check(&[("descriptor.remote_address", b"192.0.2.1")], &[("descriptor.remote_address", "1***")], None);
        check(&[], &[], None);
    }

    #[test]
    fn an_account_is_shown_by_its_mark_and_a_claim_as_a_name() {
        check(&[("user", b"00ff"), ("jwt.sub", b"alice")], &[("user", "00ff"), ("jwt.sub", "a***")], None);
        let choices = ["user", "client_ip", "jwt.sub"]
            .map(|text| KeyPart { selector: text.parse().unwrap(), spelling: Spelling::Usual });
        let first = KeyPart { selector: Selector::First(choices.into()), spelling: Spelling::Usual };
        let spec = KeySpec { parts: vec![first], ..KeySpec::default() };
        let shown = |value: &str| {
            let mut key = Key::default();
            key.push(value.as_bytes());
            let named = DisplayKey::of(&spec, &key, &KeyHasher::new([7; 16]));
            let operators = OperatorKey::of(&spec, &key, &KeyHasher::new([7; 16])).parts.remove(0);
            assert_eq!(named.for_operators()[0], (operators.selector, operators.value));
            (named.masked_words(), named.for_operators()[0].1.clone(), named.address())
        };
        assert_eq!(shown("4:user:00ff"), ("user=00ff".into(), "00ff".into(), None));
        let address = "192.0.2.1/32".parse().ok();
        assert_eq!(shown("9:client_ip:192.0.2.1/32"), ("client_ip=192.0.*.*".into(), "192.0.2.1".into(), address));
        let (masked, clear, _) = shown("7:jwt.sub:alice");
        assert!(masked.starts_with("jwt.sub=a***") && clear == "alice", "{masked} {clear}");
        assert_eq!(shown("").0, "first(user, client_ip, jwt.sub)=");
    }

    #[test]
    fn masks_tell_names_and_tokens_apart_and_say_nothing_of_passwords() {
        let shown = |secret: u8, selector: &str, value: &str| {
            let spec = KeySpec {
                parts: vec![KeyPart { selector: selector.parse().unwrap(), spelling: Spelling::Usual }],
                ..KeySpec::default()
            };
            let mut key = Key::default();
            key.push(value.as_bytes());
            DisplayKey::of(&spec, &key, &KeyHasher::new([secret; 16])).masked.remove(0).1
        };
        let [alice, anna] = ["alice", "anna"].map(|name| shown(7, "param.username", name));
        assert!(alice != anna && alice.starts_with("a***") && alice.len() == 8, "{alice} {anna}");
        assert_eq!(shown(7, "form.user", "alice"), alice, "one name has one mask wherever it stands");
        assert_ne!(shown(8, "param.username", "alice"), alice, "without the secret the mask cannot be computed");
        assert_ne!(shown(7, "bearer", "abc"), shown(7, "bearer", "abd"));
        for guessable in ["param.password", "form.pin", "json.otp", "query.code"] {
            assert_eq!(shown(7, guessable, "1234"), "***", "a reader of the log could try all of them");
        }
    }

    #[test]
    fn an_address_is_masked_and_known_in_clear_where_it_is_the_whole_key() {
        check(&[("client_ip", &ip("198.51.100.7", 32))], &[("client_ip", "198.51.*.*")], Some("198.51.100.7/32"));
        check(&[("client_ip", &ip("198.51.100.7", 24))], &[("client_ip", "198.51.*.*")], Some("198.51.100.0/24"));
        check(&[("client_ip", &ip("2001:db8:1:2::9", 32))], &[("client_ip", "2001:db8:*")], Some("2001:db8:1:2::/64"));
        let both = [("client_ip", "198.51.*.*"), ("param.username", "b***")];
        check(&[("client_ip", &ip("198.51.100.7", 32)), ("param.username", b"bob")], &both, None);
    }

    #[test]
    fn operators_who_may_lift_a_ban_see_addresses_and_user_names_and_no_secret() {
        let selectors = ["client_ip", "param.username", "json.user.email", "param.user_password", "bearer", "query.q"];
        let address = ip("198.51.100.7", 32);
        let values: [&[u8]; 6] = [&address, b"alice", b"a@example.com", b"hunter2", b"abc", b"term"];
        let (mut spec, mut key) = (KeySpec::default(), Key::default());
        for (selector, value) in selectors.iter().zip(values) {
            spec.parts.push(KeyPart { selector: selector.parse().unwrap(), spelling: Spelling::Usual });
            key.push(value);
        }
        let named = DisplayKey::of(&spec, &key, &KeyHasher::new([7; 16]));
        let named_in_clear = named.for_operators();
        let shown: Vec<&str> = named_in_clear.iter().map(|(_, value)| &**value).collect();
        assert_eq!(shown[..4], ["198.51.100.7", "alice", "a@example.com", "***"]);
        assert!(shown[4].starts_with("***") && shown[5].starts_with("t***"), "{shown:?}");
        let OperatorKey { parts } = OperatorKey::of(&spec, &key, &KeyHasher::new([7; 16]));
        let here: Vec<&str> = parts.iter().map(|part| &*part.value).collect();
        assert_eq!(here, shown);
        let elsewhere: Vec<_> = parts.iter().map(|part| part.masked.as_deref().unwrap_or(&part.value)).collect();
        assert!(elsewhere[0] == "198.51.100.7" && elsewhere[1].starts_with("a***") && elsewhere[2].starts_with("a***"));
        let elsewhere = DisplayKey { clear: None, ..named.clone() };
        let shown = elsewhere.for_operators();
        assert!(shown[0].1 == "198.51.100.7" && shown[1].1.starts_with("a***"), "{shown:?}");
        // An address that the mask contradicts, or of a part that there is not, is not shown.
        let network = |text: &str| text.parse().expect("a network");
        let told =
            vec![(0, network("203.0.113.9/32")), (1, network("198.51.100.7/32")), (9, network("198.51.100.7/32"))];
        let misled = elsewhere.clone().with_networks(told);
        assert_eq!((misled.networks, misled.masked), (Vec::new(), elsewhere.masked.clone()));
    }
}
