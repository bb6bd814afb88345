//! What limits may ask for where they stand: answers that mean something, and clients that are known.

use super::Compiler;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::outcome::KnownBy;
use crate::config::raw::outcome::Otherwise;
use crate::config::source::Place;
use crate::key::Selector;
use crate::outcome::Outcome;

/// What the routes know that a limit holds on. What was written wrongly counts as there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// The limit holds for every request, whatever its route.
    everywhere: bool,
    has_outcome: bool,
    succeeds: bool,
    fails: bool,
    knows: bool,
    knows_by_cookie: bool,
}

impl Reach {
    /// Of a limit on a route.
    pub(super) fn of(route: &raw::route::Route) -> Self {
        let outcome = meanings(&route.outcome);
        let known = &route.known_clients;
        Self {
            everywhere: false,
            has_outcome: !route.outcome.is_absent(),
            succeeds: outcome.contains(&Outcome::Success),
            fails: outcome.contains(&Outcome::Failure),
            knows: !known.is_absent(),
            knows_by_cookie: match known.get() {
                Some(known) => match &known.by {
                    Field::Absent => false,
                    Field::Wrong => true,
                    Field::Given { value, .. } => value.value == KnownBy::Cookie,
                },
                None => !known.is_absent(),
            },
        }
    }

    /// Of a limit that holds for every request: some route has to know.
    pub(super) fn everywhere(document: &Document) -> Self {
        let routes = match &document.routes {
            Field::Given { value, .. } => &value.items[..],
            Field::Absent | Field::Wrong => &[],
        };
        let unknown = matches!(document.routes, Field::Wrong);
        let any = |has: fn(&Self) -> bool| unknown || routes.iter().map(Self::of).any(|reach| has(&reach));
        Self {
            everywhere: true,
            has_outcome: any(|reach| reach.has_outcome),
            succeeds: any(|reach| reach.succeeds),
            fails: any(|reach| reach.fails),
            knows: any(|reach| reach.knows),
            knows_by_cookie: any(|reach| reach.knows_by_cookie),
        }
    }

    pub(super) fn succeeds(&self) -> bool {
        self.succeeds
    }

    /// Who lacks it: `this route has no`.
    fn lacking(&self) -> &'static str {
        if self.everywhere { "no route has an" } else { "this route has no" }
    }

    fn lacking_known(&self) -> &'static str {
        if self.everywhere { "no route has" } else { "this route has no" }
    }
}

impl Compiler {
    /// Refuses what waits for an answer that never comes: `what` is the key and its value.
    pub(super) fn check_awaited(&mut self, at: Place, what: &str, awaited: Outcome, reach: Reach) {
        let lacking = reach.lacking();
        let place = if reach.everywhere { "the route where people log in" } else { "the route" };
        if !reach.has_outcome {
            self.mistakes.report(
                at,
                format!("`{what}` asks what the application's answers mean, and {lacking} `outcome`"),
                format!("add one to {place}, such as `outcome: {{failure: {{status: 401}}}}`"),
            );
            return;
        }
        let (comes, word) = match awaited {
            Outcome::Success => (reach.succeeds, "success"),
            Outcome::Failure | Outcome::Neither => (reach.fails, "failure"),
        };
        if !comes {
            self.mistakes.report(
                at,
                format!("`{what}` waits for a {word}, and {lacking} `outcome` by which an answer is one"),
                format!("add `{word}` to the `outcome` of {place}, or `otherwise: {word}`"),
            );
        }
    }

    /// Refuses to free known clients where nobody becomes known.
    pub(super) fn check_known(&mut self, at: Place, reach: Reach) {
        if !reach.knows {
            let message = format!("nobody becomes a `known_client`: {} `known_clients`", reach.lacking_known());
            let help = "add `known_clients: {of: param.username}` to the route where people log in";
            self.mistakes.report(at, message, help);
        }
    }

    /// Refuses a device where no cookie tells one.
    pub(super) fn check_device(&mut self, at: Place, selector: &Selector, reach: Reach) {
        if *selector == Selector::Device && !reach.knows_by_cookie {
            let message =
                format!("no cookie tells one `device` from another: {} `known_clients`", reach.lacking_known());
            let help = "add `known_clients: {of: param.username, by: cookie}` to the route where people log in";
            self.mistakes.report(at, message + " by cookie", help);
        }
    }
}

/// What answers can mean under an outcome; anything where it has a mistake.
fn meanings(outcome: &Field<raw::outcome::Outcome>) -> Vec<Outcome> {
    let raw = match outcome {
        Field::Absent => return Vec::new(),
        Field::Wrong => return Outcome::ALL.to_vec(),
        Field::Given { value, .. } => value,
    };
    let mut meanings = Vec::new();
    if !raw.success.is_absent() {
        meanings.push(Outcome::Success);
    }
    if !raw.failure.is_absent() {
        meanings.push(Outcome::Failure);
    }
    meanings.push(otherwise(raw));
    meanings
}

/// What answers are that neither side matches.
pub(super) fn otherwise(raw: &raw::outcome::Outcome) -> Outcome {
    match raw.otherwise.get().map(|otherwise| otherwise.value) {
        Some(Otherwise::Success) => Outcome::Success,
        Some(Otherwise::Failure) => Outcome::Failure,
        Some(Otherwise::Neither) => Outcome::Neither,
        None => match (raw.success.is_absent(), raw.failure.is_absent()) {
            (false, true) => Outcome::Failure,
            (true, false) => Outcome::Success,
            _ => Outcome::Neither,
        },
    }
}
