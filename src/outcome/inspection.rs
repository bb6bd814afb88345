//! The body of an answer, looked at while it streams.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use http::StatusCode;
use serde_json::Value;

use super::Matchers;
use super::Outcome;
use super::OutcomeRule;
use super::json;
use super::matchers::Side;
use super::matchers::SideMatch;
use crate::coalesce::BodyBuffer;
use crate::request::encoding::ContentCodings;

/// What was seen of an answer whose head does not say enough. At most a little more than the bound is kept of it, and
/// at most the bound of decoded text is looked at.
#[derive(Debug)]
pub struct Inspection {
    rule: Arc<OutcomeRule>,
    /// What the head says, success first.
    sides: (SideMatch, SideMatch),
    codings: ContentCodings,
    bound: usize,
    read: BodyBuffer,
    /// There was more than could be kept.
    is_full: bool,
    /// It is a part of something, whatever comes.
    is_part: bool,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyEnd {
    Whole,
    /// There was more, or there was a body and none was sent.
    Cut,
}

/// How much of a text was seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Coverage {
    All,
    /// All that may be looked at.
    Start,
    /// What could be read before it broke off or made no sense.
    Fragment,
}

impl Inspection {
    /// Begins where the head was not enough. `bound` is in bytes of decoded text.
    pub fn begin(rule: Arc<OutcomeRule>, status: StatusCode, headers: &HeaderMap, bound: usize) -> Self {
        let sides = rule.sides_of_head(status, headers);
        let is_part = status == StatusCode::PARTIAL_CONTENT;
        let read = BodyBuffer::expecting(room(bound));
        Self { rule, sides, codings: ContentCodings::of(headers), bound, read, is_full: false, is_part }
    }

    /// Takes what came next of the body, as it came.
    pub fn feed(&mut self, data: &[u8]) {
        let room = room(self.bound).saturating_sub(self.read.len());
        self.read.copy(&data[..data.len().min(room)]);
        self.is_full |= data.len() > room;
    }

    /// Whether nothing that follows would be looked at.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// What the answer means; `None`: that cannot be told.
    pub fn conclude(self, ending: BodyEnd) -> Option<Outcome> {
        let decoded = if self.codings.is_none() {
            DecodedTexts { bodies: vec![Cow::Borrowed(self.read.as_slice())], seen: Coverage::All }
        } else {
            let decoded = self.codings.decode(self.read.as_slice(), self.bound);
            let seen = if decoded.whole { Coverage::All } else { Coverage::Fragment };
            DecodedTexts { bodies: decoded.bodies, seen }
        };
        let texts = decoded.bounded(self.bound, self.is_full, ending == BodyEnd::Cut || self.is_part);
        let documents = texts.documents(&self.rule);
        let ask = |head, matchers: &Option<Matchers>, side| match (head, matchers) {
            (SideMatch::Unsure, Some(matchers)) => texts.ask(&documents, matchers, side),
            (known, _) => known,
        };
        let success = ask(self.sides.0, &self.rule.success, Side::Success);
        let failure = ask(self.sides.1, &self.rule.failure, Side::Failure);
        self.rule.resolve(success, failure)
    }
}

/// What may be kept: what is compressed may be longer than its text, by little.
pub fn room(bound: usize) -> usize {
    bound.saturating_add(bound / 16).saturating_add(1024)
}

/// What may be looked at.
struct DecodedTexts<'b> {
    /// Several where one body can be read in several ways.
    bodies: Vec<Cow<'b, [u8]>>,
    seen: Coverage,
}

impl DecodedTexts<'_> {
    fn bounded(mut self, bound: usize, is_full: bool, is_cut: bool) -> Self {
        let is_long = self.bodies.iter().any(|body| body.len() > bound);
        let fills_it = self.bodies.iter().any(|body| body.len() >= bound);
        for body in &mut self.bodies {
            *body = match std::mem::take(body) {
                Cow::Borrowed(text) => Cow::Borrowed(&text[..text.len().min(bound)]),
                Cow::Owned(mut text) => {
                    text.truncate(bound);
                    Cow::Owned(text)
                }
            };
        }
        self.seen = match self.seen {
            _ if is_long => Coverage::Start,
            Coverage::All if !is_full && !is_cut => Coverage::All,
            // It broke off behind all that may be looked at.
            _ if is_full || fills_it => Coverage::Start,
            _ => Coverage::Fragment,
        };
        self
    }

    /// What is JSON among them, where that is asked for.
    fn documents(&self, rule: &OutcomeRule) -> Vec<Value> {
        let mut sides = [&rule.success, &rule.failure].into_iter().flatten();
        if sides.all(|matchers| matchers.json.is_empty()) {
            return Vec::new();
        }
        let document = |body: &Cow<'_, [u8]>| {
            let text = String::from_utf8_lossy(body);
            serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
        };
        self.bodies.iter().filter_map(document).collect()
    }

    fn ask(&self, documents: &[Value], matchers: &Matchers, side: Side) -> SideMatch {
        let unless_found = match (self.seen, side) {
            (Coverage::All, _) | (Coverage::Start, Side::Success) => SideMatch::No,
            // Whoever makes a page long must not push the mark of a failure out of sight.
            (Coverage::Start, Side::Failure) | (Coverage::Fragment, _) => SideMatch::Unsure,
        };
        let mut all = SideMatch::Yes;
        if let Some(pattern) = &matchers.body
            && !self.bodies.iter().any(|body| pattern.is_in(body))
        {
            all = unless_found;
        }
        for (path, expected) in &matchers.json {
            if documents.iter().any(|document| json::holds(document, path, expected)) {
                continue;
            }
            let is_told = !documents.is_empty() || unless_found == SideMatch::No;
            all = if is_told || all == SideMatch::No { SideMatch::No } else { SideMatch::Unsure };
        }
        all
    }
}

#[cfg(test)]
mod tests;
