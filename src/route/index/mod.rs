//! Finds the routes that a request may take without comparing it with every route.

mod candidates;
mod hosts;
mod places;
mod requests;
mod segments;
mod texts;

pub(super) use self::candidates::Candidates;
pub(super) use self::places::Places;
pub(super) use self::requests::RequestIndex;
