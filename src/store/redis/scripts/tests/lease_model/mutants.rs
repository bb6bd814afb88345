//! Leases that break one rule each.

use std::time::Duration;

use crate::rules::limit::Algorithm;

/// Leases that break one rule.
#[derive(Debug)]
pub(super) struct Mutant {
    /// The rule.
    pub(super) rule: &'static str,
    /// What stands in the scripts, and what stands there instead.
    pub(super) replaced: &'static [(&'static str, &'static str)],
    pub(super) reset_drops_leases: bool,
    /// Under which algorithm this is a mistake; `None`: under all.
    pub(super) algorithm: Option<Algorithm>,
    /// From when the holder counts its deadline.
    pub(super) deadline: Deadline,
}

/// From when the holder counts its deadline.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Deadline {
    FromSending,
    FromReceiving,
    /// By so much too late.
    Late(Duration),
}

impl Mutant {
    /// Whether its holder spends too late.
    pub(super) fn is_late(&self) -> bool {
        self.deadline != Deadline::FromSending
    }
}

const FAITHFUL: Mutant =
    Mutant { rule: "", replaced: &[], reset_drops_leases: false, algorithm: None, deadline: Deadline::FromSending };

pub(super) const ALL: &[Mutant] = &[
    Mutant {
        rule: "a unit counts until its lease has ended and a window more, not from the moment of leasing",
        replaced: &[
            ("if id == l.ended then", "if false then"),
            ("elseif ends + grace <= now then", "elseif false then"),
            ("elseif ends <= begin then", "elseif false then"),
            (
                "                l.held = l.held + units\n",
                "                l.held = l.held + (ends - 1000000 > begin and units or 0)\n",
            ),
        ],
        ..FAITHFUL
    },
    Mutant {
        rule: "leased units count beside what is charged",
        replaced: &[("(holds and l.held or 0)\n", "0\n")],
        ..FAITHFUL
    },
    Mutant { rule: "a lease takes nothing of what others hold", replaced: &[("least - l.held", "least")], ..FAITHFUL },
    Mutant {
        rule: "what was spent of a lease that ends is charged",
        replaced: &[("c.cost = own + l.spent + l.late_units", "c.cost = own + l.late_units")],
        ..FAITHFUL
    },
    Mutant {
        rule: "what was spent stays counted when the request that ends the lease is denied",
        replaced: &[("if l.spent > 0 then", "if false then")],
        ..FAITHFUL
    },
    Mutant {
        rule: "a lease that is not given back counts when it has ended",
        replaced: &[("if ends > begin then", "if false then")],
        ..FAITHFUL
    },
    Mutant {
        rule: "a lease is given back once",
        replaced: &[(
            "if id == l.ended then",
            "if not l.given and (id == l.ended or #l.ended > 0 and l.ended:byte() > 0) then",
        )],
        ..FAITHFUL
    },
    Mutant {
        rule: "a token bucket does not refill what is leased, as if it were spent at once",
        replaced: &[
            ("c.cost = own + l.spent + l.late_units + (holds and l.held or 0)\n", "c.cost = own\n"),
            (
                "                units = granted(c, l)\n",
                "                units = granted(c, l)\n\
                 if units > 0 then\nc.cost = units\ncharge_alone(c)\nwrite_charge(c)\nend\n",
            ),
        ],
        algorithm: Some(Algorithm::TokenBucket { burst: None }),
        ..FAITHFUL
    },
    Mutant {
        rule: "a sliding counter counts until the window after its own has ended",
        replaced: &[("longest = 2 * longest\n", "\n")],
        algorithm: Some(Algorithm::SlidingWindowCounter),
        ..FAITHFUL
    },
    Mutant {
        rule: "a fixed window counts what was spent of a lease that ended after it opened",
        replaced: &[("l.ends <= opened and", "true and"), ("ends <= moment and units", "true and units")],
        algorithm: Some(Algorithm::FixedWindow),
        ..FAITHFUL
    },
    Mutant { rule: "a reset leaves leases", reset_drops_leases: true, ..FAITHFUL },
    Mutant { rule: "the deadline counts from sending", deadline: Deadline::FromReceiving, ..FAITHFUL },
    Mutant {
        rule: "the deadline has a margin for drift",
        deadline: Deadline::Late(Duration::from_millis(50)),
        ..FAITHFUL
    },
];
