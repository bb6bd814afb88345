//! The conditions of a `match`, all of which must hold.

/// What a request must be like to take a route.
#[derive(Clone, Debug, Default)]
pub struct Condition {}
