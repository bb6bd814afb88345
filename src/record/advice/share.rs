//! Judges the share of some among many, anew after each thousand.

/// The counts at the last verdict.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    all: u64,
    part: u64,
}

impl Share {
    /// Begins with the next request.
    pub(super) fn from(all: u64, part: u64) -> Self {
        Self { all, part }
    }

    /// The numbers since the last verdict, `(all, part)`, once they are [`ENOUGH`]; they then begin anew. A counter that went
    /// back counts from there. A request may be in `part` a moment before it is in `all`.
    pub(super) fn take(&mut self, all: u64, part: u64) -> Option<(u64, u64)> {
        let since = (all.saturating_sub(self.all), part.saturating_sub(self.part));
        if all < self.all || since.0 >= ENOUGH {
            *self = Self { all, part };
        }
        (since.0 >= ENOUGH).then_some((since.0, since.1.min(since.0)))
    }
}

/// Fewer requests say nothing.
pub(super) const ENOUGH: u64 = 1000;
