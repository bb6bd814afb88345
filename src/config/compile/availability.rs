//! What limits may ask for where they stand: answers that mean something, and clients that are known.

use super::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::Field;
use crate::config::raw::outcome::KnownBy;
use crate::config::raw::outcome::Otherwise;
use crate::config::source::SourceRange;
use crate::key::Selector;
use crate::outcome::Outcome;

/// What the routes know that a limit holds on. What was written wrongly counts as there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Availability {
    /// The limit holds for every request, whatever its route.
    everywhere: bool,
    /// What answers can mean; `None`: nobody says.
    answers: Option<PossibleOutcomes>,
    known: KnownClientMethod,
}

/// What answers can mean.
#[derive(Clone, Copy, Debug, Default)]
struct PossibleOutcomes {
    succeed: bool,
    fail: bool,
}

/// How clients become known, the least telling first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum KnownClientMethod {
    Never,
    ByAddress,
    ByCookie,
}

impl Availability {
    /// Of a limit on a route.
    pub(super) fn of(route: &raw::route::Route) -> Self {
        Self { everywhere: false, answers: answers(&route.outcome), known: known(&route.known_clients) }
    }

    /// Of a limit that holds for every request: some route has to know.
    pub(super) fn everywhere(document: &Document) -> Self {
        let mut all = Self { everywhere: true, answers: None, known: KnownClientMethod::Never };
        let routes = match &document.routes {
            Field::Absent => return all,
            Field::Wrong => {
                let answers = Some(PossibleOutcomes { succeed: true, fail: true });
                return Self { answers, known: KnownClientMethod::ByCookie, ..all };
            }
            Field::Given { value, .. } => &value.items,
        };
        for availability in routes.iter().map(Self::of) {
            all.known = all.known.max(availability.known);
            if let Some(PossibleOutcomes { succeed, fail }) = availability.answers {
                let before = all.answers.unwrap_or_default();
                all.answers = Some(PossibleOutcomes { succeed: succeed | before.succeed, fail: fail | before.fail });
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
    pub(super) fn check_awaited(&mut self, at: SourceRange, what: &str, awaited: Outcome, availability: Availability) {
        let lacking = if availability.everywhere { "no route has an" } else { "this route has no" };
        let place = if availability.everywhere { "the route where people log in" } else { "the route" };
        let Some(answers) = availability.answers else {
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
    pub(super) fn check_known(&mut self, at: SourceRange, availability: Availability) {
        if availability.known == KnownClientMethod::Never {
            let message = format!("nobody becomes a `known_client`: {} `known_clients`", availability.lacking());
            let help = "add `known_clients: {of: param.username}` to the route where people log in";
            self.mistakes.report(at, message, help);
        }
    }

    /// Refuses a device where no cookie tells one.
    pub(super) fn check_device(&mut self, at: SourceRange, selector: &Selector, availability: Availability) {
        if *selector == Selector::Device && availability.known != KnownClientMethod::ByCookie {
            let message =
                format!("no cookie tells one `device` from another: {} `known_clients`", availability.lacking());
            let help = "add `known_clients: {of: param.username, by: cookie}` to the route where people log in";
            self.mistakes.report(at, message + " by cookie", help);
        }
    }
}

/// What answers can mean under an outcome; anything where it has a mistake.
fn answers(outcome: &Field<raw::outcome::Outcome>) -> Option<PossibleOutcomes> {
    let raw = match outcome {
        Field::Absent => return None,
        Field::Wrong => return Some(PossibleOutcomes { succeed: true, fail: true }),
        Field::Given { value, .. } => value,
    };
    let rest = otherwise(raw);
    Some(PossibleOutcomes {
        succeed: !raw.success.is_absent() || rest == Outcome::Success,
        fail: !raw.failure.is_absent() || rest == Outcome::Failure,
    })
}

fn known(clients: &Field<raw::outcome::KnownClients>) -> KnownClientMethod {
    let by = match clients {
        Field::Absent => return KnownClientMethod::Never,
        Field::Wrong => return KnownClientMethod::ByCookie,
        Field::Given { value, .. } => &value.by,
    };
    let by_address = match by {
        Field::Absent => true,
        Field::Wrong => false,
        Field::Given { value, .. } => value.value == KnownBy::Address,
    };
    if by_address { KnownClientMethod::ByAddress } else { KnownClientMethod::ByCookie }
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
