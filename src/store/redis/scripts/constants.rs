//! What gateway and scripts call by the same name: scripts name what Rust enumerates.

use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::Duration;

use crate::limit::Algorithm;
use crate::limit::Rule;
use crate::signing::key_ring::MAX_KEYS;
use crate::store::bans::index::MOST_BANS;

/// How a key is counted: what looks at it, and what charges it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Log = 1,
    /// A log that may outgrow being written whole.
    Long = 2,
    Counter = 3,
    Bucketed = 4,
    Fixed = 5,
    Token = 6,
    Concurrent = 7,
    Distinct = 8,
}

/// The first byte of what is stored under a key.
#[derive(Clone, Copy, Debug)]
enum Tag {
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

/// What is done about charges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Charge all, or none but the attempts.
    Decide,
    /// Another server has denied the request already: charge attempts, and what shadows count alone.
    Deny,
    /// Say where the keys stand, and charge nothing.
    Look,
}

/// What is particular about a charge; a bit each.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    /// It is charged when the request is denied, too.
    Attempts = 1,
    Shadow = 2,
    Delay = 4,
    /// Of what delays: it is not charged without room.
    WithRoom = 8,
    UnlessKnown = 16,
}

/// What a settlement does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Settle {
    Release = 1,
    TakeBack = 2,
    Charge = 3,
    Reset = 4,
    Remember = 5,
}

/// What stands for a span where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// There is room, or nothing was charged.
    None = -1,
    /// The charge does not hold for the client.
    Exempt = -2,
}

/// How long slots in flight stay taken when their holder says no more.
pub const LEASE: Duration = Duration::from_secs(30);

/// Logs up to this length are read and written whole.
pub(super) const LONGEST_LOG: u32 = 128;

/// How long a key stays after it says nothing any more, in milliseconds: the clocks of a server and its replica differ.
pub(super) const SLACK_MS: u64 = 1000;

/// The same where the time is given: it stands still while tests run.
pub(super) const GIVEN_SLACK_MS: u64 = 61_000;

/// With how many digits a key's name ends.
pub(super) const KEY_DIGITS: usize = 32;

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Log,
        Self::Long,
        Self::Counter,
        Self::Bucketed,
        Self::Fixed,
        Self::Token,
        Self::Concurrent,
        Self::Distinct,
    ];

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

impl Tag {
    const ALL: [Self; 11] = [
        Self::Log,
        Self::WideLog,
        Self::Ring,
        Self::WideRing,
        Self::Counter,
        Self::Bucketed,
        Self::Fixed,
        Self::Token,
        Self::Concurrent,
        Self::Distinct,
        Self::KnownClients,
    ];
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Decide, Self::Deny, Self::Look];

    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Decide => "D",
            Self::Deny => "N",
            Self::Look => "L",
        }
    }
}

impl Mode {
    const ALL: [Self; 5] = [Self::Attempts, Self::Shadow, Self::Delay, Self::WithRoom, Self::UnlessKnown];
}

impl Answer {
    const ALL: [Self; 2] = [Self::None, Self::Exempt];
}

impl Settle {
    const ALL: [Self; 5] = [Self::Release, Self::TakeBack, Self::Charge, Self::Reset, Self::Remember];
}

/// These lines of Lua with the value of each constant where its name was: scripts know no constants, and a local of the
/// script that a function reads costs the server more than a tenth of a microsecond each time.
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

/// Every constant that scripts may name, and its value in Lua.
pub(super) static CONSTANTS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    all.extend(Kind::ALL.map(|kind| (name("KIND", &kind), (kind as u8).to_string())));
    all.extend(Tag::ALL.map(|tag| (name("TAG", &tag), (tag as u8).to_string())));
    all.extend(Purpose::ALL.map(|purpose| (name("PURPOSE", &purpose), format!("'{}'", purpose.letter()))));
    all.extend(Mode::ALL.map(|mode| (name("MODE", &mode), (mode as u8).to_string())));
    all.extend(Settle::ALL.map(|settle| (name("SETTLE", &settle), (settle as u8).to_string())));
    all.extend(Answer::ALL.map(|answer| (name("ANSWER", &answer), (answer as i8).to_string())));
    all.extend(OWN.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let shared = [
        ("LONGEST_LOG", LONGEST_LOG.to_string()),
        ("KEY_DIGITS", KEY_DIGITS.to_string()),
        ("SLACK_MS", SLACK_MS.to_string()),
        ("GIVEN_SLACK_MS", GIVEN_SLACK_MS.to_string()),
        ("MAX_KEYS", MAX_KEYS.to_string()),
        ("MOST_BANS", MOST_BANS.to_string()),
    ];
    all.extend(shared.map(|(name, value)| (name.to_owned(), value)));
    all
});

/// What scripts alone make use of.
const OWN: [(&str, &str); 7] = [
    // In a second.
    ("MICROS", "1000000"),
    // Entries of logs have 6 bytes, or 7 where a log is longer than 2^48 us.
    ("MODULUS", "281474976710656"),
    ("WIDE_MODULUS", "72057594037927936"),
    ("RING_FORMAT", "'>BI7I4I4I4I7I2I4I4I4I4'"),
    ("RING_HEAD", "45"),
    // What 4 bytes hold.
    ("MOST_COUNTED", "4294967295"),
    // 2^53: up to here, and no further, numbers are exact.
    ("LARGEST_EXACT", "9007199254740992"),
];

/// `TAG_WIDE_LOG` of `Tag::WideLog`.
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
