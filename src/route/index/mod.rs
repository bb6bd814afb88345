//! Finds the routes that a request may take without comparing it with every route.

mod candidates;
mod places;
mod requests;
mod segments;

pub(super) use self::requests::RequestIndex;
