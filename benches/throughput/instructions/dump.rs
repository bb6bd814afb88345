//! Reads what callgrind writes.

use std::collections::HashMap;
use std::iter::Sum;
use std::ops::Sub;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// User instructions.
    pub(crate) instructions: u64,
    /// Calls of the allocator by code in Rust: new memory, and more of it. A build that has inlined them shows none.
    pub(crate) allocations: u64,
}

impl Counts {
    /// Reads a file of callgrind, which names a function once and has its number from then on.
    pub(super) fn read(dump: &str) -> Option<Self> {
        let total = dump.lines().find_map(|line| line.strip_prefix("totals: "))?;
        let (mut allocations, mut names, mut is_allocator) = (0, HashMap::new(), false);
        for line in dump.lines() {
            if let Some((kind @ ("fn" | "cfn"), function)) = line.split_once('=') {
                let (number, name) = function.split_once(' ').unwrap_or((function, ""));
                if !name.is_empty() {
                    names.insert(number, ALLOCATOR.iter().any(|ending| name.ends_with(ending)));
                }
                is_allocator = kind == "cfn" && names.get(number) == Some(&true);
            } else if let Some(calls) = line.strip_prefix("calls=").filter(|_| is_allocator) {
                allocations += calls.split(' ').next()?.parse::<u64>().ok()?;
            }
        }
        Some(Self { instructions: total.trim().parse().ok()?, allocations })
    }

    /// Of one of so many requests.
    pub(super) fn per_request(self, requests: u64) -> Self {
        Self { instructions: self.instructions / requests, allocations: self.allocations / requests }
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_sub(other.instructions),
            allocations: self.allocations.saturating_sub(other.allocations),
        }
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            instructions: sum.instructions + one.instructions,
            allocations: sum.allocations + one.allocations,
        })
    }
}

const ALLOCATOR: [&str; 3] = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"];
