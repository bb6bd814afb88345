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
    /// What answers can mean; `None`: nobody says.
    answers: Option<Answers>,
    known: Known,
}

/// What answers can mean.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    succeed: bool,
    fail: bool,
}

/// How clients become known, the least telling first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Known {
    Never,
    ByAddress,
    ByCookie,
}

impl Reach {
    /// Of a limit on a route.
    pub(super) fn of(route: &raw::route::Route) -> Self {
        Self { everywhere: false, answers: answers(&route.outcome), known: known(&route.known_clients) }
    }

    /// Of a limit that holds for every request: some route has to know.
    pub(super) fn everywhere(document: &Document) -> Self {
        let mut all = Self { everywhere: true, answers: None, known: Known::Never };
        let routes = match &document.routes {
            Field::Absent => return all,
            Field::Wrong => {
                let answers = Some(Answers { succeed: true, fail: true });
                return Self { answers, known: Known::ByCookie, ..all };
            }
            Field::Given { value, .. } => &value.items,
        };
        for reach in routes.iter().map(Self::of) {
            all.known = all.known.max(reach.known);
            if let Some(Answers { succeed, fail }) = reach.answers {
                let before = all.answers.unwrap_or_default();
                all.answers = Some(Answers { succeed: succeed | before.succeed, fail: fail | before.fail });
            }
        }
        all
    }

    pub(super) fn succeeds(self) -> bool {
        self.answers.is_some_and(|answers| answers.succeed)
    }

    /// Who lacks it, before the name of a key.
    fn lacking(self) -> &'static str {
        if self.everywhere { "no route has" } else { "this route has no" }
    }
}

impl Compiler {
    /// Refuses what waits for an answer that never comes: `what` is the key and its value.
    pub(super) fn check_awaited(&mut self, at: Place, what: &str, awaited: Outcome, reach: Reach) {
        let lacking = if reach.everywhere { "no route has an" } else { "this route has no" };
        let place = if reach.everywhere { "the route where people log in" } else { "the route" };
        let Some(answers) = reach.answers else {
            self.mistakes.report(
                at,
                format!("`{what}` asks what the application's answers mean, and {lacking} `outcome`"),
                format!("add one to {place}, such as `outcome: {{failure: {{status: 401}}}}`"),
            );
            return;
        };
        let (comes, word) = match awaited {
            Outcome::Success => (answers.succeed, "success"),
            Outcome::Failure | Outcome::Neither => (answers.fail, "failure"),
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
        if reach.known == Known::Never {
            let message = format!("nobody becomes a `known_client`: {} `known_clients`", reach.lacking());
            let help = "add `known_clients: {of: param.username}` to the route where people log in";
            self.mistakes.report(at, message, help);
        }
    }

    /// Refuses a device where no cookie tells one.
    pub(super) fn check_device(&mut self, at: Place, selector: &Selector, reach: Reach) {
        if *selector == Selector::Device && reach.known != Known::ByCookie {
            let message = format!("no cookie tells one `device` from another: {} `known_clients`", reach.lacking());
            let help = "add `known_clients: {of: param.username, by: cookie}` to the route where people log in";
            self.mistakes.report(at, message + " by cookie", help);
        }
    }
}

/// What answers can mean under an outcome; anything where it has a mistake.
fn answers(outcome: &Field<raw::outcome::Outcome>) -> Option<Answers> {
    let raw = match outcome {
        Field::Absent => return None,
        Field::Wrong => return Some(Answers { succeed: true, fail: true }),
        Field::Given { value, .. } => value,
    };
    let rest = otherwise(raw);
    Some(Answers {
        succeed: !raw.success.is_absent() || rest == Outcome::Success,
        fail: !raw.failure.is_absent() || rest == Outcome::Failure,
    })
}

fn known(clients: &Field<raw::outcome::KnownClients>) -> Known {
    let by = match clients {
        Field::Absent => return Known::Never,
        Field::Wrong => return Known::ByCookie,
        Field::Given { value, .. } => &value.by,
    };
    let by_address = match by {
        Field::Absent => true,
        Field::Wrong => false,
        Field::Given { value, .. } => value.value == KnownBy::Address,
    };
    if by_address { Known::ByAddress } else { Known::ByCookie }
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
