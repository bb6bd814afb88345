//! Reads what callgrind and DHAT write.

use std::collections::HashMap;
use std::fmt;
use std::iter::Sum;
use std::ops::Sub;

use serde::Deserialize;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// User instructions.
    pub(crate) instructions: f64,
    /// Calls of the allocator by code in Rust: new memory, and more of it. A build that has inlined them shows none.
    pub(crate) allocations: f64,
    /// Instructions that were not in a first-level cache of 32 KiB, and data that was not in another.
    pub(crate) misses: f64,
    /// Bytes that were copied from one place in memory to another by `memcpy` and its like.
    pub(crate) copied: f64,
}

impl Counts {
    /// Reads a file of callgrind, which names a function once and has its number from then on.
    pub(super) fn read(dump: &str) -> Option<Self> {
        let total = |event: &str| {
            let line = |start| dump.lines().find_map(|line| line.strip_prefix(start)).map(str::split_whitespace);
            let place = line("events: ")?.position(|name| name == event)?;
            line("totals: ")?.nth(place)?.parse::<f64>().ok()
        };
        let (mut allocations, mut names, mut is_allocator) = (0.0, HashMap::new(), false);
        for line in dump.lines() {
            if let Some((kind @ ("fn" | "cfn"), function)) = line.split_once('=') {
                let (number, name) = function.split_once(' ').unwrap_or((function, ""));
                if !name.is_empty() {
                    names.insert(number, ALLOCATOR.iter().any(|ending| name.ends_with(ending)));
                }
                is_allocator = kind == "cfn" && names.get(number) == Some(&true);
            } else if let Some(calls) = line.strip_prefix("calls=").filter(|_| is_allocator) {
                allocations += calls.split(' ').next()?.parse::<f64>().ok()?;
            }
        }
        let misses = total("I1mr")? + total("D1mr")? + total("D1mw")?;
        Some(Self { instructions: total("Ir")?, allocations, misses, copied: 0.0 })
    }

    /// Of one of so many requests.
    pub(super) fn per_request(self, requests: u32) -> Self {
        let requests = f64::from(requests);
        Self {
            instructions: self.instructions / requests,
            allocations: self.allocations / requests,
            misses: self.misses / requests,
            copied: self.copied / requests,
        }
    }
}

/// How many bytes a process has copied, by a file of DHAT.
pub(super) fn copied(file: &str) -> Option<f64> {
    /// What DHAT knows of the places in the program that copy.
    #[derive(Deserialize)]
    struct Copies {
        pps: Vec<Place>,
    }

    #[derive(Deserialize)]
    struct Place {
        #[serde(rename = "tb")]
        total_bytes: f64,
    }

    let Copies { pps } = serde_json::from_str(file).ok()?;
    Some(pps.iter().map(|place| place.total_bytes).sum())
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instructions, allocations, misses, copied } = self;
        write!(
            f,
            "{instructions:.0} instructions, {allocations:.1} allocations, {misses:.0} cache misses, {copied:.0} bytes copied"
        )
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            instructions: self.instructions - other.instructions,
            // What tasks in the background allocate is in both, and may be more in the shorter load.
            allocations: (self.allocations - other.allocations).max(0.0),
            misses: self.misses - other.misses,
            copied: self.copied - other.copied,
        }
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            instructions: sum.instructions + one.instructions,
            allocations: sum.allocations + one.allocations,
            misses: sum.misses + one.misses,
            copied: sum.copied + one.copied,
        })
    }
}

const ALLOCATOR: [&str; 3] = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"];
