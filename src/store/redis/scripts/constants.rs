//! Values that scripts and gateway share: scripts use the names of Rust enums.

use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::Duration;

use crate::rules::limit::{Algorithm, Rule};
use crate::store::bans::index::MOST_BANS;
use crate::store::parts::{RESERVED_FOR, WHOLE};
use crate::store::redis::settings::KEY_DIGITS;
use crate::words::signing::MAX_KEYS;

/// Defines an enum whose variants scripts know, with the list of all.
macro_rules! shared_enum {
    (
        $(#[$about:meta])*
        $visible:vis enum $name:ident { $( $(#[$of_variant:meta])* $variant:ident $(= $value:literal)?, )+ }
    ) => {
        $(#[$about])*
        $visible enum $name { $( $(#[$of_variant])* $variant $(= $value)?, )+ }

        impl $name {
            pub(super) const ALL: &[Self] = &[ $( Self::$variant ),+ ];
        }
    };
}

shared_enum! {
    /// How a key is counted: which Lua functions look at it and charge it.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub(super) enum CounterKind {
        Log = 1,
        /// A log that may become too long to be written whole.
        Long = 2,
        Counter = 3,
        Bucketed = 4,
        Fixed = 5,
        Token = 6,
        Concurrent = 7,
        Distinct = 8,
    }
}

shared_enum! {
    /// The first byte of a stored state.
    #[derive(Clone, Copy, Debug)]
    enum StateTag {
        Log = 1,
        WideLog = 2,
        Ring = 3,
        WideRing = 4,
        Counter = 5,
        Bucketed = 6,
        Fixed = 7,
        Token = 8,
        Concurrent = 9,
        Distinct = 10,
        KnownClients = 11,
    }
}

shared_enum! {
    /// What a call does with its charges.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Purpose {
        /// Charge all of them, or only the attempts.
        Decide,
        /// Another server has denied the request already: charge only attempts and shadow limits.
        Deny,
        /// Return where the keys stand, and charge nothing.
        Look,
    }
}

shared_enum! {
    /// Bits that modify a charge.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum ModeBit {
        /// It is charged also if the request is denied.
        Attempts = 1,
        Shadow = 2,
        Delay = 4,
        /// A delay that is charged only if there is room.
        WithRoom = 8,
        UnlessKnown = 16,
        /// It is decided, and never charged.
        Free = 32,
    }
}

shared_enum! {
    /// The first byte of a settlement.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum SettlementCode {
        Release = 1,
        TakeBack = 2,
        Charge = 3,
        Reset = 4,
        Remember = 5,
    }
}

shared_enum! {
    /// Special values in place of a span.
    #[derive(Clone, Copy, Debug)]
    pub(super) enum AnswerCode {
        /// There is room, or nothing was charged.
        None = -1,
        /// The charge does not hold for this client.
        Exempt = -2,
    }
}

/// How long slots stay taken if their holder does not renew them.
pub const LEASE: Duration = Duration::from_secs(30);

/// Logs up to this length are read and written whole.
pub(super) const LONGEST_LOG: u32 = 128;

/// How long a key stays after its state has expired, in milliseconds: the clocks of a server and its replica differ.
pub(super) const SLACK_MS: u64 = 1000;

/// The same with a given time, which stands still while tests run.
pub(super) const GIVEN_SLACK_MS: u64 = 61_000;

/// How many sessions and forgotten sessions one call loads at most.
pub(super) const SESSIONS_OF_PAGE: usize = 500;

impl CounterKind {
    pub(super) fn of(rule: &Rule) -> Self {
        match rule {
            Rule::Concurrent(_) => Self::Concurrent,
            Rule::Distinct(_) => Self::Distinct,
            Rule::Rates { algorithm, rates, .. } => match algorithm {
                Algorithm::SlidingWindowLog if rates.largest_count().get() <= LONGEST_LOG => Self::Log,
                Algorithm::SlidingWindowLog => Self::Long,
                Algorithm::SlidingWindowCounter => Self::Counter,
                Algorithm::BucketedWindow { .. } => Self::Bucketed,
                Algorithm::FixedWindow => Self::Fixed,
                Algorithm::TokenBucket { .. } => Self::Token,
            },
        }
    }
}

impl Purpose {
    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Decide => "D",
            Self::Deny => "N",
            Self::Look => "L",
        }
    }
}

/// Replaces the names of constants in Lua code by their values. Lua has no constants, and each read of a script's local
/// by a function costs the server more than a tenth of a microsecond.
pub(super) fn with_values(lua: &str) -> String {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut text = String::with_capacity(lua.len());
    let mut rest = lua;
    while !rest.is_empty() {
        let begins_name = rest.starts_with(is_of_name);
        let end = rest.find(|letter| is_of_name(letter) != begins_name).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let constant = CONSTANTS.iter().find(|(name, _)| name == word);
        text.push_str(constant.map_or(word, |(_, value)| value));
        rest = after;
    }
    text
}

/// Every constant that scripts may use, and its value in Lua.
pub(super) static CONSTANTS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    all.extend(CounterKind::ALL.iter().map(|kind| (name("KIND", kind), (*kind as u8).to_string())));
    all.extend(StateTag::ALL.iter().map(|tag| (name("TAG", tag), (*tag as u8).to_string())));
    all.extend(Purpose::ALL.iter().map(|purpose| (name("PURPOSE", purpose), format!("'{}'", purpose.letter()))));
    all.extend(ModeBit::ALL.iter().map(|mode| (name("MODE", mode), (*mode as u8).to_string())));
    all.extend(SettlementCode::ALL.iter().map(|settle| (name("SETTLE", settle), (*settle as u8).to_string())));
    all.extend(AnswerCode::ALL.iter().map(|answer| (name("ANSWER", answer), (*answer as i8).to_string())));
    all.extend(OWN.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let shared = [
        ("LONGEST_LOG", LONGEST_LOG.to_string()),
        ("KEY_DIGITS", KEY_DIGITS.to_string()),
        ("SLACK_MS", SLACK_MS.to_string()),
        ("GIVEN_SLACK_MS", GIVEN_SLACK_MS.to_string()),
        ("MAX_KEYS", MAX_KEYS.to_string()),
        ("MOST_BANS", MOST_BANS.to_string()),
        ("SESSIONS_OF_PAGE", SESSIONS_OF_PAGE.to_string()),
        ("PARTS_WHOLE", WHOLE.to_string()),
        ("PARTS_RESERVED", RESERVED_FOR.as_micros().to_string()),
        ("PARTS_KEPT_MS", RESERVED_FOR.as_millis().to_string()),
    ];
    all.extend(shared.map(|(name, value)| (name.to_owned(), value)));
    all
});

/// Constants that only scripts use.
const OWN: [(&str, &str); 18] = [
    // In a second.
    ("MICROS", "1000000"),
    // A tenth of a second, in which the time of a session is kept.
    ("TENTH", "100000"),
    // How long it is known which sessions were forgotten, and of how many at most.
    ("FORGOTTEN_MS", "3600000"),
    ("MOST_FORGOTTEN", "10000"),
    // Entries of logs have 6 bytes, or 7 if a log spans more than 2^48 us.
    ("MODULUS", "281474976710656"),
    ("WIDE_MODULUS", "72057594037927936"),
    ("RING_FORMAT", "'>BI7I4I4I4I7I2I4I4I4I4'"),
    ("RING_HEAD", "45"),
    // The largest number of 4 bytes.
    ("MOST_COUNTED", "4294967295"),
    // 2^53: numbers are exact up to here.
    ("LARGEST_EXACT", "9007199254740992"),
    // The bytes of a lease.
    ("LEASE_RECORD", "19"),
    // How long after its end, in us, a lease may still be given back.
    ("LEASE_GRACE", "1000000"),
    // A key has leases if it lets pass so many units a second for each gateway.
    ("LEASED_PACE", "4"),
    // A lease has at most this part of a gateway's share of what is left.
    ("LEASED_PART", "4"),
    ("MOST_LEASES", "64"),
    // Nobody is granted a part so long after the table was lost, in us.
    ("PARTS_QUIET", "2000000"),
    // A gateway that was not heard of for so long, in us, is silent: it has missed two calls.
    ("PARTS_SILENT", "150000000"),
    // How many gateways on the machine of the caller an answer names.
    ("MOST_NEIGHBOURS", "64"),
];

/// `TAG_WIDE_LOG` of `StateTag::WideLog`.
fn name(prefix: &str, variant: &dyn Debug) -> String {
    let mut name = prefix.to_owned();
    for letter in format!("{variant:?}").chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}
