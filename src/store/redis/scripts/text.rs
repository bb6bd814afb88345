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
    Distinct = 8,
}

impl Kind {
    const ALL: [Self; 8] = [
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
            Self::Distinct => "look_distinct(key, blob, size + 2, cost, n, y)",
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
            Self::Distinct => "charge_distinct(c)",
        }
    }
}

/// Several kinds, a bit for each.
pub(super) fn kinds<'r>(rules: impl Iterator<Item = &'r Rule>) -> usize {
    rules.fold(0, |kinds, rule| kinds | 1 << Kind::of(rule) as usize)
}

/// The script that decides charges of these kinds, or some that do not hold for known clients.
pub(super) fn deciding(kinds: usize, heeds_known: bool) -> &'static Script {
    static SCRIPTS: [[OnceLock<Script>; ALL_KINDS]; 2] = [const { [const { OnceLock::new() }; ALL_KINDS] }; 2];
    SCRIPTS[usize::from(heeds_known)][kinds].get_or_init(|| Script::of(decision(&used(kinds), heeds_known)))
}

/// The script of a probe: the one that most decisions need.
pub(super) fn probing() -> &'static Script {
    deciding(1 << Kind::Log as usize, false)
}

/// The script that settles what became of requests that were charged by these kinds.
pub(super) fn settling(kinds: usize) -> &'static Script {
    static SCRIPTS: [OnceLock<Script>; ALL_KINDS] = [const { OnceLock::new() }; ALL_KINDS];
    SCRIPTS[kinds].get_or_init(|| Script::of(settlement(&used(kinds))))
}

/// The script that says whether a client is known.
pub(super) fn knowing() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
        Script::of(include_str!("lua/knows.lua").replace("--@acquainted", include_str!("lua/acquainted.lua")))
    });
    &SCRIPT
}

pub(super) fn renewing() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(include_str!("lua/renew.lua").to_owned()));
    &SCRIPT
}

pub(super) fn banning() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(include_str!("lua/bans.lua").to_owned()));
    &SCRIPT
}

pub(super) fn keyring() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(include_str!("lua/keyring.lua").to_owned()));
    &SCRIPT
}

/// Logs up to this length are read and written whole.
pub(super) const SHORT_LOG: u32 = 128;

/// How many sets of kinds there are; no kind has the lowest bit.
const ALL_KINDS: usize = 1 << 9;

fn used(kinds: usize) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| kinds & 1 << *kind as usize != 0).collect()
}

impl Script {
    fn of(text: String) -> Self {
        let sha = redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha }
    }
}

fn decision(used: &[Kind], heeds_known: bool) -> String {
    let mut parts = functions(used);
    let mut known = ["", "", ""];
    if heeds_known {
        parts.push_str(include_str!("lua/acquainted.lua"));
        known = [include_str!("lua/known.lua"), include_str!("lua/exempt.lua"), "end"];
    }
    let fresh = if used.contains(&Kind::Distinct) { "if kind == 8 then size = size + 1 end" } else { "" };
    let text = include_str!("lua/decide.lua").replace("--@kinds", &parts);
    let text = text.replace("--@known", known[0]).replace("--@exempt", known[1]).replace("--@asked", known[2]);
    with_calls(&text.replace("--@fresh", fresh), used)
}

fn settlement(used: &[Kind]) -> String {
    let text = include_str!("lua/settle.lua");
    if used.is_empty() {
        return text.replace("--@kinds", "").replace("--@counted", "");
    }
    let parts = functions(used) + include_str!("lua/taking.lua");
    with_calls(&text.replace("--@kinds", &parts).replace("--@counted", include_str!("lua/counted.lua")), used)
}

/// What looks at keys of these kinds, and charges them.
fn functions(used: &[Kind]) -> String {
    let has = |kind| used.contains(&kind);
    let mut parts = Vec::new();
    if has(Kind::Log) || has(Kind::Long) {
        let begins = if has(Kind::Long) { include_str!("lua/long_begins.lua") } else { "" };
        parts.push(include_str!("lua/log.lua").replace("--@long", begins));
    }
    if has(Kind::Long) {
        parts.push(include_str!("lua/long.lua").to_owned());
    }
    if [Kind::Counter, Kind::Bucketed, Kind::Fixed, Kind::Token].into_iter().any(has) {
        parts.push(include_str!("lua/windows.lua").to_owned());
    }
    if has(Kind::Counter) || has(Kind::Token) {
        parts.push(include_str!("lua/exact.lua").to_owned());
    }
    for (kind, text) in [
        (Kind::Counter, include_str!("lua/counter.lua")),
        (Kind::Bucketed, include_str!("lua/bucketed.lua")),
        (Kind::Fixed, include_str!("lua/fixed.lua")),
        (Kind::Token, include_str!("lua/token.lua")),
        (Kind::Concurrent, include_str!("lua/concurrent.lua")),
        (Kind::Distinct, include_str!("lua/distinct.lua")),
    ] {
        if has(kind) {
            parts.push(text.to_owned());
        }
    }
    parts.join("\n") + "\n"
}

/// Puts the calls of these kinds where they belong.
fn with_calls(text: &str, used: &[Kind]) -> String {
    let write = if used.contains(&Kind::Long) { include_str!("lua/long_write.lua") } else { "" };
    text.replace("--@unroll", include_str!("lua/unroll.lua"))
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
