//! The decision from end to end: a request, the memory store, the decision.

mod access;
mod devices;
mod explaining;
mod limits;
mod missing;
mod operator;
mod outcomes;
mod overrides;
mod penalties;
mod responses;
mod support;
