//! A list that follows the decisions of a Local API.

use std::sync::Arc;
use std::time::Duration;

use super::Bouncer;

/// Where the members of a list come from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListSource {
    /// The name of the list.
    pub list: Arc<str>,
    pub bouncer: Bouncer,
    /// From one answer to the next question.
    pub every: Duration,
}

impl ListSource {
    /// `every` where the configuration leaves it out.
    pub const EVERY: Duration = Duration::from_secs(10);
}
