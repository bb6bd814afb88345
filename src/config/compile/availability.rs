//! Which outcomes and known clients are available to a limit, depending on its route.

use crate::config::compile::document::Compiler;
use crate::config::compile::outcome::{FAILURE, SUCCESS};
use crate::config::raw;
use crate::config::raw::{Document, Field};
use crate::config::source::SourceRange;
use crate::rules::key::Selector;
use crate::rules::outcome::Outcome;
use crate::rules::route::KnownBy;

/// The data that is available on the routes that a limit applies to. An invalid setting counts as available, so that it
/// is reported only once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Availability {
    /// The limit applies to every request, on any route.
    everywhere: bool,
    /// The outcomes that answers can have; `None`: no `outcome` is configured.
    answers: Option<PossibleOutcomes>,
    known: KnownClientMethod,
}

/// The outcomes that answers can have.
#[derive(Clone, Copy, Debug, Default)]
struct PossibleOutcomes {
    succeed: bool,
    fail: bool,
}

/// How clients become known, the weakest method first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum KnownClientMethod {
    Never,
    ByAddress,
    ByCookie,
}

impl Availability {
    /// The availability for a limit on a route.
    pub(super) fn of(route: &raw::route::Route) -> Self {
        Self { everywhere: false, answers: answers(&route.outcome), known: known(&route.known_clients) }
    }

    /// The availability for a limit that applies to every request: everything that some route has.
    pub(super) fn everywhere(document: &Document) -> Self {
        let mut all = Self { everywhere: true, answers: None, known: KnownClientMethod::Never };
        let routes = match &document.routes {
            Field::Absent => return all,
            Field::Invalid => {
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

    /// The beginning of the text about a missing key, before the name of the key.
    fn lacking(self) -> &'static str {
        if self.everywhere { "no route has" } else { "this route has no" }
    }
}

impl Compiler {
    /// Reports a setting that depends on an outcome that no answer can have; `what` is the key and its value.
    pub(super) fn check_awaited(&mut self, at: SourceRange, what: &str, awaited: Outcome, availability: Availability) {
        let lacking = if availability.everywhere { "no route has an" } else { "this route has no" };
        let place = if availability.everywhere { "the route where people log in" } else { "the route" };
        let Some(answers) = availability.answers else {
            self.mistakes.report(
                at,
                format!("`{what}` needs the meaning of the application's answers, and {lacking} `outcome`"),
                format!("add one to {place}, such as `outcome: {{failure: {{status: 401}}}}`"),
            );
            return;
        };
        let (comes, word, example) = match awaited {
            Outcome::Success => (answers.succeed, "success", SUCCESS),
            Outcome::Failure | Outcome::Neither => (answers.fail, "failure", FAILURE),
        };
        if !comes {
            self.mistakes.report(
                at,
                format!(
                    "`{what}` needs answers that are a {word}, and {lacking} `outcome` that makes an answer a {word}"
                ),
                format!("add `{word}: {example}` to the `outcome` of {place}, or `otherwise: {word}`"),
            );
        }
    }

    /// Reports `unless: [known_client]` where no client can become known.
    pub(super) fn check_known(&mut self, at: SourceRange, availability: Availability) {
        if availability.known == KnownClientMethod::Never {
            let message = format!("no client can become a `known_client`: {} `known_clients`", availability.lacking());
            let help = "add `known_clients: {of: param.username}` to the route where people log in";
            self.mistakes.report(at, message, help);
        }
    }

    /// Reports the selector `device` where no device cookie is set.
    pub(super) fn check_device(&mut self, at: SourceRange, selector: &Selector, availability: Availability) {
        if *selector == Selector::Device && availability.known != KnownClientMethod::ByCookie {
            let message =
                format!("the selector `device` needs a device cookie: {} `known_clients`", availability.lacking());
            let help = "add `known_clients: {of: param.username, by: cookie}` to the route where people log in";
            self.mistakes.report(at, message + " by cookie", help);
        }
    }
}

/// The outcomes that answers can have under an `outcome`; all of them if it has a mistake.
fn answers(outcome: &Field<raw::route::Outcome>) -> Option<PossibleOutcomes> {
    let raw = match outcome {
        Field::Absent => return None,
        Field::Invalid => return Some(PossibleOutcomes { succeed: true, fail: true }),
        Field::Given { value, .. } => value,
    };
    let rest = otherwise(raw);
    Some(PossibleOutcomes {
        succeed: !raw.success.is_absent() || rest == Outcome::Success,
        fail: !raw.failure.is_absent() || rest == Outcome::Failure,
    })
}

fn known(clients: &Field<raw::route::KnownClients>) -> KnownClientMethod {
    let by = match clients {
        Field::Absent => return KnownClientMethod::Never,
        Field::Invalid => return KnownClientMethod::ByCookie,
        Field::Given { value, .. } => &value.by,
    };
    let by_address = match by {
        Field::Absent => true,
        Field::Invalid => false,
        Field::Given { value, .. } => value.value == KnownBy::Address,
    };
    if by_address { KnownClientMethod::ByAddress } else { KnownClientMethod::ByCookie }
}

/// The outcome of an answer that matches neither side.
pub(super) fn otherwise(raw: &raw::route::Outcome) -> Outcome {
    match raw.otherwise.get() {
        Some(otherwise) => otherwise.value,
        None => match (raw.success.is_absent(), raw.failure.is_absent()) {
            (false, true) => Outcome::Failure,
            (true, false) => Outcome::Success,
            _ => Outcome::Neither,
        },
    }
}
