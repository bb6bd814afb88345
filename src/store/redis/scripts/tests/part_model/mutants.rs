//! Parts that break one rule each.

/// Parts that break one rule.
#[derive(Debug)]
pub(super) struct Mutant {
    /// The rule.
    pub(super) rule: &'static str,
    /// What stands in the script, and what stands there instead.
    pub(super) replaced: &'static [(&'static str, &'static str)],
    pub(super) tells_first: bool,
    pub(super) ends_from_receiving: bool,
}

const FAITHFUL: Mutant = Mutant { rule: "", replaced: &[], tells_first: false, ends_from_receiving: false };

pub(super) const ALL: &[Mutant] = &[
    Mutant { rule: "a gateway shrinks before it tells", tells_first: true, ..FAITHFUL },
    Mutant { rule: "a part ends by when the call was sent", ends_from_receiving: true, ..FAITHFUL },
    Mutant {
        rule: "the part of a gateway that is silent stays reserved",
        replaced: &[("now - moment > 3636000000)", "is_silent)")],
        ..FAITHFUL
    },
    Mutant {
        rule: "it stays reserved for longer than clocks may drift apart",
        replaced: &[("now - moment > 3636000000)", "now - moment > 3590000000)")],
        ..FAITHFUL
    },
    Mutant {
        rule: "a call that arrives after a later one changes nothing",
        replaced: &[("if number <= own_number then", "if false then")],
        ..FAITHFUL
    },
    Mutant {
        rule: "a table that was lost grants nothing for a while",
        replaced: &[("quiet = now + 2000000", "quiet = now")],
        ..FAITHFUL
    },
    Mutant {
        rule: "neither does one that another server wrote",
        replaced: &[("if server ~= this then", "quiet = quiet or now + 2000000\nif false then")],
        ..FAITHFUL
    },
    Mutant {
        rule: "a gateway that holds more than is noted gets no more than is free",
        replaced: &[("math.min(held, math.max(own or 0, free))", "held")],
        ..FAITHFUL
    },
    Mutant {
        rule: "what is granted is free",
        replaced: &[("math.max(units, math.min(fair, free))", "math.max(units, fair)")],
        ..FAITHFUL
    },
];
