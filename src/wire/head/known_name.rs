//! The names of fields that the gateway reads or writes itself, or that most clients and applications send. Each has a
//! number.

use std::{fmt, iter};

use crate::wire::head::field_name;

macro_rules! known_names {
    ($($name:ident = $text:literal,)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "named like the constants that they number")]
        enum Number { $($name),* }

        impl KnownName {
            $(pub const $name: Self = Self(Number::$name as u8);)*
        }

        /// By number.
        const TEXTS: &[&str] = &[$($text),*];

        /// By number: how the line of a field with this name begins.
        const LINE_STARTS: &[&str] = &[$(concat!($text, ": ")),*];
    };
}

/// Found by trying: with these factors of the first bytes, the last bytes and the length no two known names share a slot.
const FIRST: u32 = 0xd18f_c597;

const LAST: u32 = 0xa394_3ba9;

const LENGTH: u32 = 0xc6ff_9713;

const SLOT_BITS: u32 = 9;

/// Set in the bytes of every known name: a name in another case has the same slot.
const CASE_BITS: u32 = u32::from_le_bytes([b'a' ^ b'A'; 4]);

/// By [`slot`]: the number of the name.
#[expect(clippy::cast_possible_truncation, reason = "there are at most 128")]
static SLOTS: [u8; 1 << SLOT_BITS] = {
    let mut slots = [KnownName::UNKNOWN; 1 << SLOT_BITS];
    let mut number = 0;
    while number < TEXTS.len() {
        let slot = slot(TEXTS[number].as_bytes());
        assert!(slots[slot] == KnownName::UNKNOWN, "two known names share a slot: choose other factors");
        slots[slot] = number as u8;
        number += 1;
    }
    slots
};

/// One bit for each in a [`NameSet`].
const _: () = assert!(TEXTS.len() <= 128);

/// A name with a number, so that it is compared in one step. Names are in lower case.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct KnownName(u8);

known_names! {
    ACCEPT = "accept",
    ACCEPT_CHARSET = "accept-charset",
    ACCEPT_ENCODING = "accept-encoding",
    ACCEPT_LANGUAGE = "accept-language",
    ACCEPT_RANGES = "accept-ranges",
    ACCESS_CONTROL_ALLOW_CREDENTIALS = "access-control-allow-credentials",
    ACCESS_CONTROL_ALLOW_HEADERS = "access-control-allow-headers",
    ACCESS_CONTROL_ALLOW_METHODS = "access-control-allow-methods",
    ACCESS_CONTROL_ALLOW_ORIGIN = "access-control-allow-origin",
    ACCESS_CONTROL_EXPOSE_HEADERS = "access-control-expose-headers",
    AGE = "age",
    ALLOW = "allow",
    ALT_SVC = "alt-svc",
    AUTHORIZATION = "authorization",
    CACHE_CONTROL = "cache-control",
    CONNECTION = "connection",
    CONTENT_DISPOSITION = "content-disposition",
    CONTENT_ENCODING = "content-encoding",
    CONTENT_LANGUAGE = "content-language",
    CONTENT_LENGTH = "content-length",
    CONTENT_LOCATION = "content-location",
    CONTENT_RANGE = "content-range",
    CONTENT_SECURITY_POLICY = "content-security-policy",
    CONTENT_TYPE = "content-type",
    COOKIE = "cookie",
    CROSS_ORIGIN_OPENER_POLICY = "cross-origin-opener-policy",
    CROSS_ORIGIN_RESOURCE_POLICY = "cross-origin-resource-policy",
    DATE = "date",
    DNT = "dnt",
    ETAG = "etag",
    EXPECT = "expect",
    EXPIRES = "expires",
    FORWARDED = "forwarded",
    GRPC_MESSAGE = "grpc-message",
    GRPC_RETRY_PUSHBACK_MS = "grpc-retry-pushback-ms",
    GRPC_STATUS = "grpc-status",
    HOST = "host",
    HTTP2_SETTINGS = "http2-settings",
    IF_MATCH = "if-match",
    IF_MODIFIED_SINCE = "if-modified-since",
    IF_NONE_MATCH = "if-none-match",
    IF_RANGE = "if-range",
    IF_UNMODIFIED_SINCE = "if-unmodified-since",
    KEEP_ALIVE = "keep-alive",
    LAST_MODIFIED = "last-modified",
    LINK = "link",
    LOCATION = "location",
    ORIGIN = "origin",
    PERMISSIONS_POLICY = "permissions-policy",
    PORTCULLIS_LOOP = "portcullis-loop",
    PRAGMA = "pragma",
    PRIORITY = "priority",
    PROXY_AUTHENTICATE = "proxy-authenticate",
    PROXY_AUTHENTICATION_INFO = "proxy-authentication-info",
    PROXY_AUTHORIZATION = "proxy-authorization",
    PROXY_CONNECTION = "proxy-connection",
    RANGE = "range",
    RATELIMIT = "ratelimit",
    RATELIMIT_POLICY = "ratelimit-policy",
    REFERER = "referer",
    REFERRER_POLICY = "referrer-policy",
    RETRY_AFTER = "retry-after",
    SAVE_DATA = "save-data",
    SEC_CH_UA = "sec-ch-ua",
    SEC_CH_UA_ARCH = "sec-ch-ua-arch",
    SEC_CH_UA_MOBILE = "sec-ch-ua-mobile",
    SEC_CH_UA_MODEL = "sec-ch-ua-model",
    SEC_CH_UA_PLATFORM = "sec-ch-ua-platform",
    SEC_FETCH_DEST = "sec-fetch-dest",
    SEC_FETCH_MODE = "sec-fetch-mode",
    SEC_FETCH_SITE = "sec-fetch-site",
    SEC_FETCH_USER = "sec-fetch-user",
    SEC_GPC = "sec-gpc",
    SEC_WEBSOCKET_ACCEPT = "sec-websocket-accept",
    SEC_WEBSOCKET_EXTENSIONS = "sec-websocket-extensions",
    SEC_WEBSOCKET_KEY = "sec-websocket-key",
    SEC_WEBSOCKET_PROTOCOL = "sec-websocket-protocol",
    SEC_WEBSOCKET_VERSION = "sec-websocket-version",
    SERVER = "server",
    SERVER_TIMING = "server-timing",
    SET_COOKIE = "set-cookie",
    STRICT_TRANSPORT_SECURITY = "strict-transport-security",
    TE = "te",
    TRACEPARENT = "traceparent",
    TRACESTATE = "tracestate",
    TRAILER = "trailer",
    TRANSFER_ENCODING = "transfer-encoding",
    UPGRADE = "upgrade",
    UPGRADE_INSECURE_REQUESTS = "upgrade-insecure-requests",
    USER_AGENT = "user-agent",
    VARY = "vary",
    VIA = "via",
    WWW_AUTHENTICATE = "www-authenticate",
    X_CONTENT_TYPE_OPTIONS = "x-content-type-options",
    X_CSRF_TOKEN = "x-csrf-token",
    X_FORWARDED_FOR = "x-forwarded-for",
    X_FORWARDED_HOST = "x-forwarded-host",
    X_FORWARDED_PORT = "x-forwarded-port",
    X_FORWARDED_PROTO = "x-forwarded-proto",
    X_FRAME_OPTIONS = "x-frame-options",
    X_HTTP_METHOD = "x-http-method",
    X_HTTP_METHOD_OVERRIDE = "x-http-method-override",
    X_METHOD_OVERRIDE = "x-method-override",
    X_POWERED_BY = "x-powered-by",
    X_RATELIMIT_LIMIT = "x-ratelimit-limit",
    X_RATELIMIT_REMAINING = "x-ratelimit-remaining",
    X_RATELIMIT_RESET = "x-ratelimit-reset",
    X_REAL_IP = "x-real-ip",
    X_REQUEST_ID = "x-request-id",
    X_REQUESTED_WITH = "x-requested-with",
    X_XSS_PROTECTION = "x-xss-protection",
}

impl KnownName {
    /// How many there are.
    pub const COUNT: usize = TEXTS.len();

    /// The known name with this text, which is in lower case.
    pub fn of(name: &[u8]) -> Option<Self> {
        let slot = SLOTS[slot(name)];
        let text = TEXTS.get(usize::from(slot))?;
        (text.as_bytes() == name).then_some(Self(slot))
    }

    /// The known name with this text in any case, which is put into lower case.
    #[inline]
    pub(super) fn in_any_case(name: &mut [u8]) -> Option<Self> {
        let slot = SLOTS[slot(name)];
        let text = TEXTS.get(usize::from(slot))?;
        field_name::lower_if_is(name, text.as_bytes()).then_some(Self(slot))
    }

    /// Every known name, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(Self::COUNT).map(Self)
    }

    pub const fn as_str(self) -> &'static str {
        TEXTS[self.0 as usize]
    }

    /// The name and what stands between it and a value.
    pub(super) const fn line_start(self) -> &'static str {
        LINE_STARTS[self.0 as usize]
    }

    /// Below [`Self::COUNT`].
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// Its place in a [`NameSet`]: a word, and a bit.
    const fn place(self) -> (usize, u64) {
        ((self.0 >> 6) as usize & 1, 1 << (self.0 & 0x3f))
    }

    /// Undoes [`Self::to_byte`]. `None`: no name has this number.
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        (usize::from(byte) < Self::COUNT).then_some(Self(byte))
    }

    pub(super) fn to_byte(self) -> u8 {
        self.0
    }

    /// Of an empty slot.
    const UNKNOWN: u8 = u8::MAX;
}

impl fmt::Debug for KnownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The position in [`SLOTS`] of a name in any case, from its length, its first four bytes and its last four: a perfect hash, so
/// that one comparison tells.
#[expect(clippy::cast_possible_truncation, reason = "a longer name is no known one, whatever its slot")]
#[inline]
const fn slot(name: &[u8]) -> usize {
    let (first, last) = match (name.first_chunk(), name.last_chunk()) {
        (Some(first), Some(last)) => (u32::from_le_bytes(*first), u32::from_le_bytes(*last)),
        _ => (short_word(name), 0),
    };
    let mixed = (first | CASE_BITS)
        .wrapping_mul(FIRST)
        .wrapping_add((last | CASE_BITS).wrapping_mul(LAST))
        .wrapping_add((name.len() as u32).wrapping_mul(LENGTH));
    (mixed >> (u32::BITS - SLOT_BITS)) as usize
}

/// A name of less than four bytes.
const fn short_word(name: &[u8]) -> u32 {
    match *name {
        [first] => u32::from_le_bytes([first, 0, 0, 0]),
        [first, second] => u32::from_le_bytes([first, second, 0, 0]),
        [first, second, third] => u32::from_le_bytes([first, second, third, 0]),
        _ => 0,
    }
}

// Sets of known names.

/// A set of known names: a bit for each, in two words, because a bit is put into a word in fewer steps than into a `u128`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NameSet([u64; 2]);

impl NameSet {
    /// Headers that describe the client and its connection.
    pub const FORWARDING: Self = Self::of(&[
        KnownName::FORWARDED,
        KnownName::X_FORWARDED_FOR,
        KnownName::X_FORWARDED_HOST,
        KnownName::X_FORWARDED_PORT,
        KnownName::X_FORWARDED_PROTO,
        KnownName::X_REAL_IP,
        KnownName::X_REQUEST_ID,
    ]);

    pub const fn of(names: &[KnownName]) -> Self {
        let mut set = Self([0; 2]);
        let mut position = 0;
        while position < names.len() {
            set.insert(names[position]);
            position += 1;
        }
        set
    }

    pub const fn has(self, name: KnownName) -> bool {
        let (word, bit) = name.place();
        self.0[word] & bit != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0[0] | self.0[1] == 0
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    #[must_use]
    pub const fn without(self, names: Self) -> Self {
        Self([self.0[0] & !names.0[0], self.0[1] & !names.0[1]])
    }

    /// Returns whether the name was there already.
    pub(super) const fn insert(&mut self, name: KnownName) -> bool {
        let (word, bit) = name.place();
        let was_there = self.0[word] & bit != 0;
        self.0[word] |= bit;
        was_there
    }

    /// In the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = KnownName> {
        let mut rest = self;
        iter::from_fn(move || {
            let name = rest.first()?;
            rest = rest.without(Self::of(&[name]));
            Some(name)
        })
    }

    fn first(self) -> Option<KnownName> {
        let [low, high] = self.0;
        let number = if low == 0 { u64::BITS + high.trailing_zeros() } else { low.trailing_zeros() };
        u8::try_from(number).ok().and_then(KnownName::from_byte)
    }
}
