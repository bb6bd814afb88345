//! The text of the scripts: the files that the charges need, joined. A batch of logs does not pay for the other
//! algorithms.

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use super::constants;
use super::constants::CounterKind;
use crate::rules::limit::Rule;

/// A script and its hash.
#[derive(Debug)]
pub struct Script {
    pub text: String,
    /// The SHA-1 of the text, in hexadecimal.
    pub sha: String,
}

impl Script {
    /// The call with so many keys, which follow it, and then its arguments.
    pub(super) fn call(&self, keys: usize) -> redis::Cmd {
        let mut command = redis::Cmd::with_capacity(USUAL_ARGUMENTS, USUAL_BYTES);
        command.arg("EVALSHA").arg(&self.sha).arg(keys);
        command
    }
}

/// With the name of the command, its hash, keys and arguments. Decisions have no more.
const USUAL_ARGUMENTS: usize = 16;

const USUAL_BYTES: usize = 512;

/// A set of kinds, a bit for each.
pub(super) fn kinds<'r>(rules: impl Iterator<Item = &'r Rule>) -> usize {
    rules.fold(0, |kinds, rule| kinds | 1 << CounterKind::of(rule) as usize)
}

/// What a script that decides is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deciding {
    /// The kinds of its charges.
    pub(super) kinds: usize,
    /// Some charges do not hold for known clients.
    pub(super) depends_on_known: bool,
    /// Some keys may have leases.
    pub(super) has_leases: bool,
}

/// The script that decides such charges.
pub(super) fn deciding(what: Deciding) -> &'static Script {
    static SCRIPTS: [[[OnceLock<Script>; ALL_KINDS]; 2]; 2] =
        [const { [const { [const { OnceLock::new() }; ALL_KINDS] }; 2] }; 2];
    let of_kinds = &SCRIPTS[usize::from(what.depends_on_known)][usize::from(what.has_leases)];
    of_kinds[what.kinds].get_or_init(|| Script::of(&decision(what)))
}

/// The script of a probe, which is the one that most decisions use.
pub(super) fn probing() -> &'static Script {
    deciding(Deciding { kinds: 1 << CounterKind::Log as usize, ..Deciding::default() })
}

/// The script that settles requests that were charged by these kinds.
pub(super) fn settling(kinds: usize) -> &'static Script {
    static SCRIPTS: [OnceLock<Script>; ALL_KINDS] = [const { OnceLock::new() }; ALL_KINDS];
    SCRIPTS[kinds].get_or_init(|| Script::of(&settlement(&used(kinds))))
}

/// The script that answers whether a client is known.
pub(super) fn is_known() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
        Script::of(&[KNOWN_CLIENT.into(), WITH_SUBJECTS.into(), include_str!("lua/is_known.lua").into()])
    });
    &SCRIPT
}

/// The script that ends a lease of a key of this kind.
pub(super) fn returning_lease(kinds: usize) -> &'static Script {
    static SCRIPTS: [OnceLock<Script>; ALL_KINDS] = [const { OnceLock::new() }; ALL_KINDS];
    SCRIPTS[kinds].get_or_init(|| {
        let mut files: Files = vec![EXPIRY.into()];
        files.extend(algorithms(&used(kinds)));
        files.extend([LEASES.into(), WRITE_CHARGE.into(), include_str!("lua/return_lease.lua").into()]);
        Script::of(&files)
    })
}

pub(super) fn renewing() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(&[include_str!("lua/renew.lua").into()]));
    &SCRIPT
}

pub(super) fn banning() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(&[include_str!("lua/bans.lua").into()]));
    &SCRIPT
}

pub(super) fn sessions() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(&[include_str!("lua/sessions.lua").into()]));
    &SCRIPT
}

pub(super) fn keyring() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(&[include_str!("lua/keyring.lua").into()]));
    &SCRIPT
}

pub(super) fn parts() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::of(&[include_str!("lua/parts.lua").into()]));
    &SCRIPT
}

/// How many sets of kinds there are; no kind has the lowest bit.
pub(super) const ALL_KINDS: usize = 2 << CounterKind::ALL.len();

const CLOCK: &str = include_str!("lua/clock.lua");

const EXPIRY: &str = include_str!("lua/expiry.lua");

const LEASES: &str = include_str!("lua/leases.lua");

const WRITE_CHARGE: &str = include_str!("lua/write_charge.lua");

const NAMES: &str = include_str!("lua/names.lua");

const KNOWN_CLIENT: &str = include_str!("lua/known_client.lua");

const WITH_SUBJECTS: &str = include_str!("lua/with_subjects.lua");

fn used(kinds: usize) -> Vec<CounterKind> {
    CounterKind::ALL.iter().copied().filter(|kind| kinds & 1 << *kind as usize != 0).collect()
}

impl Script {
    /// Joins these files.
    fn of(files: &[Cow<'_, str>]) -> Self {
        // The server does not need comments.
        let is_code = |line: &&str| !line.trim_start().starts_with("--") && !line.is_empty();
        let lines =
            NAMES.lines().chain(CLOCK.lines()).chain(files.iter().flat_map(|file| file.lines())).filter(is_code);
        let text = constants::with_values(&lines.flat_map(|line| [line, "\n"]).collect::<String>());
        let sha = redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha }
    }
}

type Files = Vec<Cow<'static, str>>;

fn decision(what: Deciding) -> Files {
    let used = used(what.kinds);
    let mut files = Files::new();
    if what.has_leases || used.iter().any(|kind| has_windows(*kind) || *kind == CounterKind::Distinct) {
        files.push(EXPIRY.into());
    }
    files.extend(algorithms(&used));
    if what.depends_on_known {
        files.extend([KNOWN_CLIENT.into(), WITH_SUBJECTS.into()]);
    } else {
        files.push(include_str!("lua/without_subjects.lua").into());
    }
    if what.has_leases {
        files.extend([LEASES.into(), include_str!("lua/deciding_leases.lua").into()]);
    }
    files.extend([WRITE_CHARGE.into(), include_str!("lua/decide.lua").into()]);
    files.push(if what.has_leases {
        include_str!("lua/granted_leases.lua").into()
    } else {
        include_str!("lua/answered.lua").into()
    });
    files
}

fn settlement(used: &[CounterKind]) -> Files {
    let mut files = vec![
        EXPIRY.into(),
        include_str!("lua/settling.lua").into(),
        include_str!("lua/release.lua").into(),
        include_str!("lua/reset.lua").into(),
        include_str!("lua/remember.lua").into(),
    ];
    if !used.is_empty() {
        files.extend(algorithms(used));
        files.extend(take_backs(used));
        files.push(include_str!("lua/counted.lua").into());
    }
    files.push(include_str!("lua/settle.lua").into());
    files
}

/// The files that look at keys of these kinds and charge them: `look(c)` and `charge(c)`.
fn algorithms(used: &[CounterKind]) -> Files {
    let mut files: Files = Files::new();
    if used.iter().any(|kind| is_log(*kind)) {
        files.extend([include_str!("lua/ring.lua").into(), include_str!("lua/log.lua").into()]);
    }
    if used.iter().any(|kind| has_windows(*kind)) {
        files.push(include_str!("lua/windows.lua").into());
    }
    if used.contains(&CounterKind::Counter) || used.contains(&CounterKind::Token) {
        files.push(include_str!("lua/division.lua").into());
    }
    files.extend(used.iter().filter_map(|kind| match kind {
        CounterKind::Log => None,
        CounterKind::Long => Some(include_str!("lua/long.lua").into()),
        CounterKind::Counter => Some(include_str!("lua/counter.lua").into()),
        CounterKind::Bucketed => Some(include_str!("lua/bucketed.lua").into()),
        CounterKind::Fixed => Some(include_str!("lua/fixed.lua").into()),
        CounterKind::Token => Some(include_str!("lua/token.lua").into()),
        CounterKind::Concurrent => Some(include_str!("lua/concurrent.lua").into()),
        CounterKind::Distinct => Some(include_str!("lua/distinct.lua").into()),
    }));
    files.extend([dispatch(used, "look", "c").into(), dispatch(used, "charge", "c").into()]);
    files
}

/// The files that take back charges of these kinds: `take_back(c, s, moment)`.
fn take_backs(used: &[CounterKind]) -> Files {
    let mut files = Files::new();
    if used.iter().any(|kind| is_log(*kind)) {
        files.push(include_str!("lua/take_back/log.lua").into());
    }
    if used.iter().any(|kind| has_windows(*kind)) {
        files.push(include_str!("lua/take_back/windows.lua").into());
    }
    files.extend(used.iter().filter_map(|kind| match kind {
        CounterKind::Log => None,
        CounterKind::Long => Some(include_str!("lua/take_back/long.lua").into()),
        CounterKind::Counter => Some(include_str!("lua/take_back/counter.lua").into()),
        CounterKind::Bucketed => Some(include_str!("lua/take_back/bucketed.lua").into()),
        CounterKind::Fixed => Some(include_str!("lua/take_back/fixed.lua").into()),
        CounterKind::Token => Some(include_str!("lua/take_back/token.lua").into()),
        CounterKind::Concurrent => Some(include_str!("lua/take_back/concurrent.lua").into()),
        CounterKind::Distinct => Some(include_str!("lua/take_back/distinct.lua").into()),
    }));
    files.push(dispatch(used, "take_back", "c, s, moment").into());
    files
}

/// A Lua function of this name, which calls the function for the kind of `c`.
fn dispatch(used: &[CounterKind], name: &str, arguments: &str) -> String {
    let of = |kind: &CounterKind| format!("{name}_{}", format!("{kind:?}").to_ascii_lowercase());
    if let [kind] = used {
        return format!("local {name} = {}\n", of(kind));
    }
    let each =
        |kind: &CounterKind| format!("    if c.kind == {} then return {}({arguments}) end\n", *kind as u8, of(kind));
    format!("local function {name}({arguments})\n{}end\n", used.iter().map(each).collect::<String>())
}

/// Whether the state of this kind is a log, long or short.
fn is_log(kind: CounterKind) -> bool {
    matches!(kind, CounterKind::Log | CounterKind::Long)
}

/// Whether the state of this kind is a window for each rate.
fn has_windows(kind: CounterKind) -> bool {
    match kind {
        CounterKind::Counter | CounterKind::Bucketed | CounterKind::Fixed | CounterKind::Token => true,
        CounterKind::Log | CounterKind::Long | CounterKind::Concurrent | CounterKind::Distinct => false,
    }
}
