//! The `then` of a limit.

use std::time::Duration;

use super::channels::Channels;
use super::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::Field;
use crate::config::raw::Spanned;
use crate::config::raw::forms::OneOrList;
use crate::config::raw::then::Actions;
use crate::limit::Action;
use crate::limit::DenyResponse;
use crate::limit::Ladder;
use crate::limit::Then;
use crate::units::Span;

impl Compiler {
    pub(super) fn then(&mut self, limit: &raw::limit::Limit, channels: &Channels) -> Then {
        let Some(raw::then::Then::Long(actions)) = limit.then.get() else { return Then::default() };
        self.refuse_several(actions);
        if !limit.concurrent.is_absent() {
            self.refuse_over_slots(actions);
        }
        let notify = actions.notify.get().map(|names| {
            if names.items.is_empty() {
                let help = "name a channel of the `notify` section, or remove it";
                self.mistakes.report(names.at, "an empty `notify` notifies no channel", help);
            }
            self.notified(&names.items, channels)
        });
        Then { action: self.action(actions), notify: notify.unwrap_or_default() }
    }

    fn action(&mut self, actions: &Actions) -> Action {
        let deny = self.response(&actions.deny);
        let delay = self.wait(&actions.delay, "delay");
        let tarpit = self.wait(&actions.tarpit, "tarpit");
        let ban = actions.ban.get().and_then(|lengths| self.ladder(lengths));
        if let Some(ladder) = ban {
            return Action::Ban(ladder);
        }
        match (tarpit, delay) {
            (Some(span), _) => Action::Tarpit(span),
            (None, Some(span)) => Action::Delay(span),
            (None, None) if actions.challenge.get().is_some() => Action::Challenge,
            // Without settings of its own it is the response of the route.
            (None, None) => Action::Deny(deny.filter(|deny| *deny != DenyResponse::default()).map(Box::new)),
        }
    }

    /// A limit has one action.
    fn refuse_several(&mut self, actions: &Actions) {
        let mut given = [
            ("deny", actions.deny.key()),
            ("delay", actions.delay.key()),
            ("tarpit", actions.tarpit.key()),
            ("ban", actions.ban.key()),
            ("challenge", actions.challenge.key()),
        ]
        .into_iter()
        .filter_map(|(word, at)| Some((at?, word)))
        .collect::<Vec<_>>();
        given.sort_unstable();
        if let Some(((_, first), others)) = given.split_first() {
            for (at, other) in others {
                self.mistakes.report(
                    *at,
                    format!("`then` has both `{first}` and `{other}`: a limit has one action"),
                    "write two limits, one with each: if both are reached, the more severe action applies",
                );
            }
        }
    }

    /// A concurrency slot comes back by itself, so there is nothing that a ban could punish or a challenge could buy.
    fn refuse_over_slots(&mut self, actions: &Actions) {
        for (at, word) in [(actions.ban.key(), "ban"), (actions.challenge.key(), "challenge")] {
            if let Some(at) = at {
                self.mistakes.report(
                    at,
                    format!("`{word}` has no meaning with `concurrent`, which counts requests in flight"),
                    format!("write a limit with a `rate` that does `{word}`"),
                );
            }
        }
    }

    /// How long a request is held.
    fn wait(&mut self, field: &Field<Spanned<Span>>, word: &str) -> Option<Duration> {
        let Spanned { value: span, at } = field.get()?;
        if span.0.is_zero() {
            self.mistakes.report(*at, format!("a `{word}` of zero has no effect"), "write one such as `2s` or `20s`");
        } else if *span > LONGEST_WAIT {
            let help = format!("write at most `{LONGEST_WAIT}`; clients hang up before that, use `ban` instead");
            self.mistakes.report(*at, format!("a `{word}` of {span} is too long"), help);
        }
        Some(span.0)
    }

    fn ladder(&mut self, raw: &OneOrList<Spanned<Span>>) -> Option<Ladder> {
        let mut before: Option<Span> = None;
        for Spanned { value: span, at } in &raw.items {
            if span.0.is_zero() {
                self.mistakes.report(*at, "a `ban` of zero has no effect", "write one such as `15m`");
            } else if *span > LONGEST_BAN {
                let help = format!(
                    "write at most `{LONGEST_BAN}`; to refuse a client for ever, put it on a list under `access.deny`"
                );
                self.mistakes.report(*at, format!("a `ban` of {span} is too long"), help);
            } else if let Some(before) = before.filter(|before| before >= span) {
                let message = format!("each further ban must be longer, and {span} is not longer than {before}");
                self.mistakes.report(*at, message, "write increasing lengths: `[15m, 1h, 24h]`");
            }
            before = Some(*span);
        }
        if raw.items.is_empty() && self.mistakes.is_empty() {
            self.mistakes.report(raw.at, "an empty `ban` has no length", "write a length: `ban: 15m`");
        }
        if !self.takes_ban_steps(raw.items.len(), raw.at) {
            return None;
        }
        Ladder::new(raw.items.iter().map(|length| length.value.0).collect())
    }
}

/// Browsers, proxies and people give up long before.
const LONGEST_WAIT: Span = Span(Duration::from_secs(3_600));

/// A longer ban should be the decision of an operator.
const LONGEST_BAN: Span = Span(Duration::from_secs(365 * 86_400));
