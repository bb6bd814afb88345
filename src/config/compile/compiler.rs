//! What every part of the compilation shares: the mistakes found so far, and how simple values are checked.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::client::Prefix;
use crate::config::mistakes::Mistakes;
use crate::config::raw::Field;
use crate::config::raw::InvalidValue;
use crate::config::raw::Spanned;
use crate::config::raw::Text;
use crate::config::settings::OutputFile;
use crate::config::source::SourceRange;
use crate::files::WatchedFile;
use crate::limit::OnFailure;
use crate::units::Size;
use crate::units::Span;

/// The state that all sections share while they are compiled.
pub(super) struct Compiler {
    pub(super) mistakes: Mistakes,
    /// The directory that paths are relative to.
    pub(super) base: PathBuf,
    /// Every file read so far.
    pub(super) files: Vec<WatchedFile>,
    /// Every file that is to be written.
    pub(super) outputs: Vec<OutputFile>,
    /// The address prefix of one client, for keys that do not set their own.
    pub(super) prefix: Prefix,
    /// What to do while Redis is down, for limits that do not set their own.
    pub(super) on_failure: OnFailure,
    /// Whether gateways may lease units, of limits that do not say.
    pub(super) leases: bool,
    pub(super) has_redis: bool,
    pub(super) proofs: Proofs,
    /// What all regular expressions and all ladders of bans take together.
    pub(super) totals: Totals,
}

/// What a configuration takes that is written in few words and large in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    regex_bytes: usize,
    ban_steps: usize,
}

/// What a configuration may learn of who asks. An invalid setting counts as available, so that it is reported only once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Proofs {
    /// A route has `sessions`.
    pub(super) sessions: bool,
    /// There is a `jwt`.
    pub(super) jwt: bool,
}

impl Compiler {
    /// A number from 1, or the default.
    pub(super) fn positive(&mut self, field: &Field<Spanned<u64>>, default: u32) -> u32 {
        self.count(field).map_or(default, NonZeroU32::get)
    }

    /// A number from 1 to `u32::MAX`; `None` where it is left out or invalid.
    pub(super) fn count(&mut self, field: &Field<Spanned<u64>>) -> Option<NonZeroU32> {
        let Spanned { value, at } = field.get()?;
        match u32::try_from(*value).map(NonZeroU32::new) {
            Ok(Some(count)) => Some(count),
            Ok(None) => {
                self.mistakes.report(*at, "`0` is too small", "write `1` or more");
                None
            }
            Err(_) => {
                self.mistakes.report(*at, format!("`{value}` is too large"), format!("write at most `{}`", u32::MAX));
                None
            }
        }
    }

    /// A number as `usize`. The caller decides about zero.
    pub(super) fn size(&mut self, value: u64, at: SourceRange) -> usize {
        usize::try_from(value).unwrap_or_else(|_| {
            self.mistakes.report(at, format!("`{value}` is too large"), "write a smaller number");
            0
        })
    }

    /// A span above zero, or the default.
    pub(super) fn span(&mut self, field: &Field<Spanned<Span>>, default: Duration) -> Duration {
        let Some(Spanned { value: Span(span), at }) = field.get() else { return default };
        if span.is_zero() {
            self.mistakes.report(*at, "a duration of zero is too short", "write one such as `500ms` or `20s`");
        }
        *span
    }

    /// A regular expression, with the bytes that it takes. Once all of them take too much, none is compiled any more.
    pub(super) fn regex<T, E: Into<InvalidValue>>(
        &mut self,
        text: &Text,
        compile: impl FnOnce(&str) -> Result<T, E>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Option<T> {
        if self.totals.regex_bytes > MAX_REGEX_BYTES {
            return None;
        }
        let compiled = self.parsed(text, compile(&text.value))?;
        self.totals.regex_bytes += bytes(&compiled);
        if self.totals.regex_bytes > MAX_REGEX_BYTES {
            let message = format!(
                "with this one, all regular expressions take more than {} when they are compiled",
                Size(MAX_REGEX_BYTES as u64)
            );
            let help =
                "repeat less: `(\\w+){1,50}` is fifty copies of all letters of the world, and `[a-z0-9_]+` is small";
            self.mistakes.report(text.at, message, help);
            return None;
        }
        Some(compiled)
    }

    /// Whether a ladder of bans with so many steps may be added.
    pub(super) fn takes_ban_steps(&mut self, steps: usize, at: SourceRange) -> bool {
        if steps > MAX_BAN_STEPS {
            let message = format!("a `ban` with {steps} lengths is too long");
            let help = format!(
                "write at most {MAX_BAN_STEPS} lengths, such as `[15m, 1h, 24h]`: further bans have the last one"
            );
            self.mistakes.report(at, message, help);
            return false;
        }
        let before = self.totals.ban_steps;
        self.totals.ban_steps += steps;
        if before <= MAX_ALL_BAN_STEPS && self.totals.ban_steps > MAX_ALL_BAN_STEPS {
            let message =
                format!("with this one, all `ban` of the configuration have more than {MAX_ALL_BAN_STEPS} lengths");
            self.mistakes.report(at, message, "write fewer lengths, such as `[15m, 1h, 24h]`");
        }
        self.totals.ban_steps <= MAX_ALL_BAN_STEPS
    }

    /// Parses a text.
    pub(super) fn parse<T: FromStr<Err: Into<InvalidValue>>>(&mut self, text: &Text) -> Option<T> {
        self.parsed(text, text.value.parse())
    }

    /// Reports why a text could not be parsed.
    pub(super) fn parsed<T>(&mut self, text: &Text, parsed: Result<T, impl Into<InvalidValue>>) -> Option<T> {
        parsed.map_err(|error| error.into().report(text.at, &mut self.mistakes)).ok()
    }
}

/// All regular expressions of a configuration together. A usual one takes some kilobytes.
const MAX_REGEX_BYTES: usize = 64 << 20;

/// A ban that is ten times as long each time is the longest one after six.
const MAX_BAN_STEPS: usize = 100;

/// All ladders of a configuration together: 1.6 MB.
const MAX_ALL_BAN_STEPS: usize = 100_000;
