//! The explanation as text.

use std::fmt;

use super::{
    AccessExplanation, Asker, Elsewhere, EmptyValue, Explanation, KeyPartExplanation, KnownClientsExplanation,
    LimitExplanation, LimitOutcome, ListExplanation, OutcomeExplanation, RouteExplanation, RouteMatch,
    SignInExplanation,
};
use crate::rules::list::Membership;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "request   {} {} on {}", self.method, self.path, TextOr(&self.host, "no host"))?;
        match self.readings.as_deref() {
            None => writeln!(f, "read as   any path: it is spelled in more ways than are looked at")?,
            Some([]) => {}
            Some(readings) => writeln!(f, "read as   {}, too", Quoted(readings, EmptyValue::Missing))?,
        }
        if self.asker == Asker::ForwardAuth {
            writeln!(f, "asked by  a proxy (forward auth), which forwards the request itself")?;
        }
        writeln!(f, "client    {}", self.client)?;
        for list in self.lists.iter().filter(|list| list.holds != Membership::None) {
            writeln!(f, "list      {list}")?;
        }
        match &self.access {
            AccessExplanation::Ordinary => {}
            AccessExplanation::Allowed(list) => writeln!(f, "access    allowed by {list}: no limit holds")?,
            AccessExplanation::Denied(list) => writeln!(f, "access    denied by {list}")?,
        }
        for route in &self.routes {
            writeln!(f, "tried     {route}")?;
        }
        writeln!(f, "route     {}", self.route.as_deref().unwrap_or("none, the default upstream"))?;
        if let Some(elsewhere) = &self.elsewhere {
            writeln!(f, "note      {elsewhere}")?;
        }
        if self.asker == Asker::Client {
            writeln!(f, "upstream  {}", self.upstream)?;
        }
        for token in &self.tokens {
            writeln!(f, "token     {token}")?;
        }
        if self.reads_body {
            match self.unread {
                None => writeln!(f, "body      read before the decision")?,
                Some(reason) => writeln!(f, "body      read before the decision and not understood: {reason}")?,
            }
        }
        if self.misses_body {
            writeln!(
                f,
                "body      not sent along by the proxy: fields in it count as empty, beside those of the query"
            )?;
        }
        if let Some(outcome) = &self.outcome {
            writeln!(f, "outcome   {outcome}")?;
        }
        if let Some(KnownClientsExplanation { of, by, r#for }) = &self.known_clients {
            let of: Vec<_> = of.iter().map(ToString::to_string).collect();
            match self.asker {
                Asker::Client => writeln!(f, "known     for {for} by {by} after a success, as {}", of.join(", "))?,
                Asker::ForwardAuth => writeln!(f, "known     nobody becomes known here: no success is seen")?,
            }
        }
        if !self.sessions.is_empty() {
            let names = self.sessions.join(", ");
            writeln!(
                f,
                "sessions  looked up by {names}: whose they are is in the store, so that `user` is missing here"
            )?;
        }
        if let Some(SignInExplanation { of, given_as, r#for }) = &self.sign_in {
            let of: Vec<_> = of.iter().map(KeyPartExplanation::to_string).collect();
            let (of, given_as) = (of.join(", "), given_as.join(", "));
            match self.asker {
                Asker::Client => writeln!(f, "signs in  by {given_as} of an own success, for {for}, as {of}")?,
                Asker::ForwardAuth => writeln!(f, "signs in  nobody here: no success is seen")?,
            }
        }
        for limit in &self.limits {
            write!(f, "{limit}")?;
        }
        match &self.denied {
            Some(reason) => writeln!(f, "decision  denied: {reason}"),
            None if self.limits.iter().any(LimitExplanation::denies) => {
                writeln!(f, "decision  denied by a limit above")
            }
            None if self.limits.iter().any(LimitExplanation::counts) => writeln!(f, "decision  as the counters stand"),
            None => writeln!(f, "decision  passes"),
        }
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.route, &self.matches_below) {
            (Some(route), Some(below)) => {
                write!(f, "the route {route} would match this under {below}: if that is the same application, ")?;
            }
            _ => f.write_str("this looks like a login, and no route is for it: ")?,
        }
        f.write_str(&self.help)
    }
}

impl LimitExplanation {
    /// Whether it counts what answers mean, or by a name from the body, as limits on logins do.
    pub(super) fn counts_logins(&self) -> bool {
        let is_name = |part: &KeyPartExplanation| {
            ["form.", "json.", "xml.", "param.", "basic.user"].iter().any(|kind| part.selector.starts_with(kind))
        };
        let counts_answers = self.count == "failures" || self.count == "successes";
        counts_answers || self.key.iter().chain(&self.distinct).any(is_name)
    }

    pub(super) fn counts(&self) -> bool {
        !self.shadow && matches!(self.outcome, LimitOutcome::Counted(_))
    }

    fn denies(&self) -> bool {
        !self.shadow && self.outcome == LimitOutcome::Denied
    }
}

impl fmt::Display for ListExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, of, holds } = self;
        match holds {
            Membership::None => write!(f, "{name} (of {of}): not in it"),
            Membership::Some => write!(f, "{name} (of {of}): in it with some of its values"),
            Membership::All => write!(f, "{name} (of {of}): in it"),
        }
    }
}

impl fmt::Display for RouteExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match (self.matches, &self.reason) {
            (RouteMatch::Surely, _) => f.write_str("matches")?,
            (RouteMatch::Plainly, _) => f.write_str("matches, but may be read otherwise")?,
            (RouteMatch::Possibly, _) => f.write_str("may be read as matching, so its rules hold too")?,
            (RouteMatch::No, Some(reason)) => f.write_str(reason)?,
            (RouteMatch::No, None) => f.write_str("does not match")?,
            (RouteMatch::NotTried, _) => f.write_str("not tried, an earlier one matches")?,
        }
        if self.denied_by_only { f.write_str("; only for lists that the client is not on") } else { Ok(()) }
    }
}

impl fmt::Display for LimitExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit     {}: {}", self.name, self.rule)?;
        if let Some(algorithm) = self.algorithm {
            write!(f, ", {algorithm}")?;
        }
        if self.count != "requests" {
            write!(f, ", {} count", self.count)?;
        }
        if let Some(answer) = self.reset_on {
            write!(f, ", a {answer} resets them")?;
        }
        if self.unless_known {
            f.write_str(", not for known clients")?;
        }
        if self.then != "deny" {
            write!(f, ", then {}", self.then)?;
        }
        if self.shadow {
            f.write_str(", shadow")?;
        }
        if self.keeps_slot {
            f.write_str(", its answer is not seen: every request keeps its place")?;
        }
        match &self.outcome {
            LimitOutcome::Counted(1) => writeln!(f)?,
            LimitOutcome::Counted(keys) => writeln!(f, ": counted under {keys} keys")?,
            LimitOutcome::Freed(list) => writeln!(f, ": does not hold for members of {list}")?,
            LimitOutcome::Skipped => writeln!(f, ": skipped, a part of its key is missing")?,
            LimitOutcome::Denied => writeln!(f, ": denied, a part of its key is missing")?,
            LimitOutcome::EndUnseen => writeln!(f, ": skipped, the end of the request is not seen")?,
            LimitOutcome::Unmet(reason) => return writeln!(f, ": not met, {reason}"),
            LimitOutcome::Replaced(by) => return writeln!(f, ": replaced by {by}"),
            LimitOutcome::Unanswered => writeln!(f, ": not counted, no `outcome` says what answers mean here")?,
            LimitOutcome::TooManyValues => writeln!(f, ": a field was sent too often")?,
            LimitOutcome::NotAsked => writeln!(f, ": not checked")?,
        }
        if self.key.is_empty() {
            writeln!(f, "  key     one for all")?;
        }
        self.key.iter().try_for_each(|part| writeln!(f, "  key     {part}"))?;
        self.distinct.iter().try_for_each(|part| writeln!(f, "  counts  different {part}"))
    }
}

impl fmt::Display for OutcomeExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (matchers, word) in [(&self.failure, "failure"), (&self.success, "success")] {
            if let Some(matchers) = matchers {
                write!(f, "{word} with {matchers}; ")?;
            }
        }
        write!(f, "otherwise {}", self.otherwise)
    }
}

impl fmt::Display for KeyPartExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.selector, Quoted(&self.values, self.empty))?;
        match self.unread {
            _ if self.values.is_empty() => f.write_str("(too many values)"),
            Some(reason) => write!(f, ", not understood: {reason}"),
            None => Ok(()),
        }
    }
}

/// Quoted values, so that no control character of a request reaches the terminal.
struct Quoted<'a>(&'a [String], EmptyValue);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, value) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            match self.1 {
                EmptyValue::Missing if value.is_empty() => write!(f, "{separator}(missing)")?,
                EmptyValue::Present if value.is_empty() => write!(f, "{separator}(empty)")?,
                EmptyValue::Missing | EmptyValue::Present => write!(f, "{separator}{value:?}")?,
            }
        }
        Ok(())
    }
}

/// A text, or another one where it is empty.
struct TextOr<'a>(&'a str, &'static str);

impl fmt::Display for TextOr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { self.1 } else { self.0 })
    }
}
