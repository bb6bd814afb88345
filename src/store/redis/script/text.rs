//! The scripts themselves: put together from parts, so that a batch of logs does not pay for the rest.

use std::fmt::Write;
use std::sync::LazyLock;
use std::sync::OnceLock;

use crate::limit::Algorithm;
use crate::limit::Rule;

/// A script, and its name in the server.
#[derive(Debug)]
pub struct Script {
    pub text: String,
    /// The SHA-1 of the text, in hexadecimal.
    pub sha: String,
}

/// How a key is remembered in Redis; the number is what scripts know it by.
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
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Log, Self::Long, Self::Counter, Self::Bucketed, Self::Fixed, Self::Token, Self::Concurrent];

    pub(super) fn of(rule: &Rule) -> Self {
        match rule {
            Rule::Concurrent(_) => Self::Concurrent,
            Rule::Distinct(_) => todo!("distinct in redis"),
            Rule::Rates { algorithm, rates, .. } => match algorithm {
                Algorithm::SlidingWindowLog if rates.largest_count().get() <= SHORT_LOG => Self::Log,
                Algorithm::SlidingWindowLog => Self::Long,
                Algorithm::SlidingWindowCounter => Self::Counter,
                Algorithm::BucketedWindow { .. } => Self::Bucketed,
                Algorithm::FixedWindow => Self::Fixed,
                Algorithm::TokenBucket { .. } => Self::Token,
            },
        }
    }

    /// Looks at a key.
    fn look(self) -> &'static str {
        match self {
            Self::Log => "look_log(pcall('GET', key), blob, size + 2, cost, n, x)",
            Self::Long => "look_long(key, blob, size + 2, cost, n, x)",
            Self::Counter => "look_counter(key, blob, size + 2, cost, n)",
            Self::Bucketed => "look_bucketed(key, blob, size + 2, cost, n, x)",
            Self::Fixed => "look_fixed(key, blob, size + 2, cost, n)",
            Self::Token => "look_token(key, blob, size + 2, cost, n, x)",
            Self::Concurrent => "look_concurrent(key, cost)",
        }
    }

    /// Counts what it was asked for.
    fn charge(self) -> &'static str {
        match self {
            Self::Log => "charge_log(c)",
            Self::Long => "charge_long(c)",
            Self::Counter => "charge_counter(c)",
            Self::Bucketed => "charge_bucketed(c)",
            Self::Fixed => "charge_fixed(c)",
            Self::Token => "charge_token(c)",
            Self::Concurrent => "charge_concurrent(c)",
        }
    }
}

/// The script that decides charges under these rules.
pub(super) fn deciding<'r>(rules: impl Iterator<Item = &'r Rule>) -> &'static Script {
    decides(rules.fold(0, |kinds, rule| kinds | 1 << Kind::of(rule) as usize))
}

/// The script of a probe: the one that most decisions need.
pub(super) fn probing() -> &'static Script {
    decides(1 << Kind::Log as usize)
}

pub(super) fn giving_back() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
        let text = include_str!("../lua/give_back.lua");
        Script::of(text.replace("--@unroll", include_str!("../lua/unroll.lua")))
    });
    &SCRIPT
}

pub(super) fn settling() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(include_str!("../lua/settle.lua").to_owned()));
    &SCRIPT
}

pub(super) fn renewing() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(include_str!("../lua/renew.lua").to_owned()));
    &SCRIPT
}

pub(super) fn forgetting() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(include_str!("../lua/forget.lua").to_owned()));
    &SCRIPT
}

pub(super) fn keyring() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(include_str!("../lua/keyring.lua").to_owned()));
    &SCRIPT
}

/// Logs up to this length are read and written whole.
pub(super) const SHORT_LOG: u32 = 128;

/// The script for a set of kinds, a bit for each; made once.
fn decides(kinds: usize) -> &'static Script {
    static SCRIPTS: [OnceLock<Script>; 1 << 8] = [const { OnceLock::new() }; 1 << 8];
    SCRIPTS[kinds].get_or_init(|| {
        let used: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kinds & 1 << *kind as usize != 0).collect();
        Script::of(assembled(&used))
    })
}

impl Script {
    fn of(text: String) -> Self {
        let sha = redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha }
    }
}

fn assembled(used: &[Kind]) -> String {
    let has = |kind| used.contains(&kind);
    let mut parts = Vec::new();
    if has(Kind::Log) || has(Kind::Long) {
        let begins = if has(Kind::Long) { include_str!("../lua/long_begins.lua") } else { "" };
        parts.push(include_str!("../lua/log.lua").replace("--@long", begins));
    }
    if has(Kind::Long) {
        parts.push(include_str!("../lua/long.lua").to_owned());
    }
    if [Kind::Counter, Kind::Bucketed, Kind::Fixed, Kind::Token].into_iter().any(has) {
        parts.push(include_str!("../lua/windows.lua").to_owned());
    }
    if has(Kind::Counter) || has(Kind::Token) {
        parts.push(include_str!("../lua/exact.lua").to_owned());
    }
    for (kind, text) in [
        (Kind::Counter, include_str!("../lua/counter.lua")),
        (Kind::Bucketed, include_str!("../lua/bucketed.lua")),
        (Kind::Fixed, include_str!("../lua/fixed.lua")),
        (Kind::Token, include_str!("../lua/token.lua")),
        (Kind::Concurrent, include_str!("../lua/concurrent.lua")),
    ] {
        if has(kind) {
            parts.push(text.to_owned());
        }
    }
    let write = if has(Kind::Long) { include_str!("../lua/long_write.lua") } else { "" };
    include_str!("../lua/decide.lua")
        .replace("--@kinds", &parts.join("\n"))
        .replace("--@unroll", include_str!("../lua/unroll.lua"))
        .replace("--@look", &chosen(used, "opens, state, a, b, d", Kind::look))
        .replace("--@charge", &chosen(used, "at", Kind::charge))
        .replace("--@write", write)
}

/// `results = call` of the kind at hand.
fn chosen(used: &[Kind], results: &str, call: impl Fn(Kind) -> &'static str) -> String {
    if let [kind] = used {
        return format!("{results} = {}", call(*kind));
    }
    let mut text = String::new();
    for (position, kind) in used.iter().enumerate() {
        let word = if position == 0 { "if" } else { "elseif" };
        let _ = writeln!(text, "{word} kind == {} then {results} = {}", *kind as usize, call(*kind));
    }
    text + "end"
}
