//! The ways in which an application may read a request: with its own method or one that overrides it, and with one or
//! another of repeated values.

use std::borrow::Cow;
use std::fmt;

use super::method::MethodSet;
use crate::list::ListId;
use crate::list::Membership;
use crate::request::CanonicalPath;
use crate::request::RequestHead;
use crate::request::RequestPath;
use crate::request::method::Overrides;
use crate::request::method::head_overrides;
use crate::request::method::methods_in;
use crate::request::method::query_may_hide_a_method;
use crate::request::query::RequestQuery;

/// How surely a condition holds: under one reading of the request, or under all.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Certainty {
    /// Under some reading, but not the plain one.
    Possibly,
    /// Under the plain reading: the method as it was sent, any of repeated values.
    Plainly,
    /// Under every reading.
    Surely,
}

/// The methods that a body may add to those of the head.
#[derive(Clone, Copy, Debug)]
pub enum BodyMethods<'a> {
    /// These. None when there is no body.
    Known(&'a [Cow<'a, str>]),
    /// Any, because the body is not understood.
    Unknown,
}

/// A request in all its readings. A client can add a reading to its request, but not remove one.
pub struct RequestReadings<'a> {
    pub head: &'a RequestHead<'a>,
    body: BodyMethods<'a>,
    membership: &'a dyn Fn(ListId) -> Membership,
    /// Read when the first route asks for a method.
    in_head: Option<HeadMethods<'a>>,
}

/// The methods that the head may add to the one sent.
struct HeadMethods<'a> {
    overrides: Overrides<'a>,
    /// Whether the query may name any other.
    is_unknown: bool,
}

impl<'a> RequestReadings<'a> {
    /// `membership` says how the request stands to a list.
    pub fn new(head: &'a RequestHead<'a>, body: BodyMethods<'a>, membership: &'a dyn Fn(ListId) -> Membership) -> Self {
        Self { head, body, membership, in_head: None }
    }

    /// How surely the method is in a set; `None`: under no reading.
    pub(super) fn method(&mut self, set: &MethodSet) -> Option<Certainty> {
        let plain = set.contains(self.head.method.as_str());
        let head = self.head;
        let HeadMethods { overrides, is_unknown } = self.in_head.get_or_insert_with(|| HeadMethods {
            overrides: head_overrides(head),
            is_unknown: !head.query.is_empty() && query_may_hide_a_method(&head.query),
        });
        let (body, unknown) = match self.body {
            BodyMethods::Known(methods) => (methods, *is_unknown),
            BodyMethods::Unknown => (&[][..], true),
        };
        let mut others = methods_in(overrides).chain(methods_in(body));
        if plain {
            let all = !unknown && others.all(|method| set.contains(method));
            return Some(if all { Certainty::Surely } else { Certainty::Plainly });
        }
        (unknown || others.any(|method| set.contains(method))).then_some(Certainty::Possibly)
    }

    /// How surely one of these lists holds the client.
    pub(super) fn client(&self, lists: &[ListId]) -> Option<Certainty> {
        let strongest = lists.iter().map(|&list| (self.membership)(list)).max()?;
        match strongest {
            Membership::None => None,
            Membership::Some => Some(Certainty::Plainly),
            Membership::All => Some(Certainty::Surely),
        }
    }
}

/// How surely a path matches: in the reading of most applications, and in the other readings.
pub(super) fn of_path(path: &RequestPath<'_>, fits: impl Fn(&CanonicalPath<'_>) -> bool) -> Option<Certainty> {
    let mut others = path.readings().iter();
    if fits(path.canonical()) {
        let surely = !path.may_be_any() && others.all(&fits);
        return Some(if surely { Certainty::Surely } else { Certainty::Plainly });
    }
    (path.may_be_any() || others.any(fits)).then_some(Certainty::Possibly)
}

/// How surely a parameter matches: in the query that was sent, and in those that stand in the path.
pub(super) fn of_query(query: &RequestQuery<'_>, name: &str, fits: impl Fn(&str) -> bool) -> Option<Certainty> {
    let sent = of_values(query.sent_values(name).map(|value| fits(&value)));
    if !query.is_ambiguous() {
        return sent;
    }
    match sent {
        Some(_) => Some(Certainty::Plainly),
        None => query.values(name).any(|value| fits(&value)).then_some(Certainty::Possibly),
    }
}

/// How surely repeated values match: all of them, some, or none.
pub(super) fn of_values(values: impl Iterator<Item = bool>) -> Option<Certainty> {
    let mut some = false;
    let mut all = true;
    for fits in values {
        some |= fits;
        all &= fits;
    }
    some.then_some(if all { Certainty::Surely } else { Certainty::Plainly })
}

impl fmt::Debug for RequestReadings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestReadings").field("head", self.head).field("body", &self.body).finish_non_exhaustive()
    }
}
