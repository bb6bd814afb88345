//! Inspects the body of an answer while it streams.

use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::json;
use super::matchers::Matchers;
use super::matchers::Side;
use super::matchers::SideMatch;
use super::rule::Outcome;
use super::rule::OutcomeRule;
use crate::coalesce::BodyBuffer;
use crate::head::Fields;
use crate::request::encoding::ContentCodings;

/// An answer whose head does not decide the outcome. The inspection keeps little more of the body than its bound, and
/// reads at most that much decoded text.
#[derive(Debug)]
pub struct Inspection {
    rule: Arc<OutcomeRule>,
    /// Dotted paths of what is a token where the body is JSON.
    tokens: Arc<[Box<str>]>,
    /// How the head matches: the success side, then the failure side.
    sides: (SideMatch, SideMatch),
    codings: ContentCodings,
    bound: usize,
    read: BodyBuffer,
    /// The body was longer than may be kept.
    is_full: bool,
    /// The answer is partial content, so its body is never complete.
    is_part: bool,
}

/// What an answer means, read to its end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inspected {
    /// `None` when it cannot be decided.
    pub outcome: Option<Outcome>,
    /// The tokens in the body.
    pub tokens: Vec<Box<str>>,
    /// The body broke off before its end, and may have had tokens there.
    pub may_lack_tokens: bool,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyEnd {
    Whole,
    /// The rest of the body, or all of it, was not sent.
    Cut,
}

/// How much of a text was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Coverage {
    All,
    /// As much as the bound allows.
    Start,
    /// The text before the body broke off or could not be decoded.
    Fragment,
}

impl Inspection {
    /// Begins when the head does not decide the outcome, or where the body may have tokens. `bound` is in bytes of decoded
    /// text.
    pub fn begin(
        rule: Arc<OutcomeRule>,
        tokens: Option<Arc<[Box<str>]>>,
        status: StatusCode,
        fields: &Fields,
        bound: usize,
    ) -> Self {
        let sides = rule.sides_of_head(status, fields);
        let is_part = status == StatusCode::PARTIAL_CONTENT;
        let read = BodyBuffer::expecting(room(bound));
        Self {
            rule,
            tokens: tokens.unwrap_or_default(),
            sides,
            codings: ContentCodings::of(fields),
            bound,
            read,
            is_full: false,
            is_part,
        }
    }

    /// Takes the next bytes of the body, as they came.
    pub fn feed(&mut self, data: &[u8]) {
        let room = room(self.bound).saturating_sub(self.read.len());
        self.read.copy(&data[..data.len().min(room)]);
        self.is_full |= data.len() > room;
    }

    /// Whether more bytes of the body would be ignored.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The outcome, and the tokens in the body.
    pub fn conclude(self, ending: BodyEnd) -> Inspected {
        let decoded = if self.codings.is_none() {
            DecodedTexts { bodies: vec![Cow::Borrowed(self.read.as_slice())], seen: Coverage::All }
        } else {
            let decoded = self.codings.decode(self.read.as_slice(), self.bound);
            let seen = if decoded.whole { Coverage::All } else { Coverage::Fragment };
            DecodedTexts { bodies: decoded.bodies, seen }
        };
        let texts = decoded.bounded(self.bound, self.is_full, ending == BodyEnd::Cut || self.is_part);
        let documents = if self.reads_json() { texts.documents() } else { Vec::new() };
        let ask = |head, matchers: &Option<Matchers>, side| match (head, matchers) {
            (SideMatch::Unsure, Some(matchers)) => texts.ask(&documents, matchers, side),
            (known, _) => known,
        };
        let success = ask(self.sides.0, &self.rule.success, Side::Success);
        let failure = ask(self.sides.1, &self.rule.failure, Side::Failure);
        Inspected {
            outcome: self.rule.resolve(success, failure),
            tokens: self.tokens.iter().flat_map(|path| json::texts(&documents, path)).collect(),
            may_lack_tokens: !self.tokens.is_empty() && texts.seen == Coverage::Fragment,
        }
    }

    fn reads_json(&self) -> bool {
        let mut sides = [&self.rule.success, &self.rule.failure].into_iter().flatten();
        !self.tokens.is_empty() || sides.any(|matchers| !matchers.json.is_empty())
    }
}

/// The bytes that an inspection may keep: a compressed body may be a little longer than its text.
pub fn room(bound: usize) -> usize {
    bound.saturating_add(bound / 16).saturating_add(1024)
}

/// The decoded body.
struct DecodedTexts<'b> {
    /// Several where the body can be decoded in several ways.
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
            // It broke off after the bound.
            _ if is_full || fills_it => Coverage::Start,
            _ => Coverage::Fragment,
        };
        self
    }

    /// The bodies that are JSON.
    fn documents(&self) -> Vec<Value> {
        let document = |body: &Cow<'_, [u8]>| {
            let text = String::from_utf8_lossy(body);
            serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()
        };
        self.bodies.iter().filter_map(document).collect()
    }

    fn ask(&self, documents: &[Value], matchers: &Matchers, side: Side) -> SideMatch {
        let unless_found = match (self.seen, side) {
            (Coverage::All, _) | (Coverage::Start, Side::Success) => SideMatch::No,
            // A client that makes a page longer must not hide the mark of a failure behind the bound.
            (Coverage::Start, Side::Failure) | (Coverage::Fragment, _) => SideMatch::Unsure,
        };
        let mut all = SideMatch::Yes;
        if let Some(pattern) = &matchers.body
            && !self.bodies.iter().any(|body| pattern.is_in(body))
        {
            all = unless_found;
        }
        for (path, expected) in &matchers.json {
            if documents.iter().any(|document| json::matches(document, path, expected)) {
                continue;
            }
            let is_decided = !documents.is_empty() || unless_found == SideMatch::No;
            all = if is_decided || all == SideMatch::No { SideMatch::No } else { SideMatch::Unsure };
        }
        all
    }
}

#[cfg(test)]
mod tests;
