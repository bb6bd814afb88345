//! Leases that break one rule each.

use std::time::Duration;

/// Leases that break one rule.
#[derive(Debug)]
pub(super) struct Mutant {
    /// The rule.
    pub(super) rule: &'static str,
    /// What stands in the scripts, and what stands there instead.
    pub(super) replaced: &'static [(&'static str, &'static str)],
    pub(super) reset_drops_leases: bool,
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

const FAITHFUL: Mutant = Mutant { rule: "", replaced: &[], reset_drops_leases: false, deadline: Deadline::FromSending };

pub(super) const ALL: &[Mutant] = &[
    Mutant {
        rule: "a unit counts until its lease has ended and a window more, not from the moment of leasing",
        replaced: &[
            ("if id == l.ended then", "if false then"),
            ("elseif ends + 1000000 <= now then", "elseif false then"),
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
        replaced: &[("c.cost = cost + counted + l.held\n", "c.cost = cost + counted\n")],
        ..FAITHFUL
    },
    Mutant { rule: "a lease takes nothing of what others hold", replaced: &[("least - l.held", "least")], ..FAITHFUL },
    Mutant {
        rule: "what was spent of a lease that ends is charged",
        replaced: &[("local counted = l.spent + l.late_units\n", "local counted = l.late_units\n")],
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
    Mutant { rule: "a reset leaves leases", reset_drops_leases: true, ..FAITHFUL },
    Mutant { rule: "the deadline counts from sending", deadline: Deadline::FromReceiving, ..FAITHFUL },
    Mutant {
        rule: "the deadline has a margin for drift",
        deadline: Deadline::Late(Duration::from_millis(50)),
        ..FAITHFUL
    },
];
