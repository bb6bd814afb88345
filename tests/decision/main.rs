//! The decision from end to end: a request, the memory store, the decision.

mod access;
mod converted;
mod descriptors;
mod devices;
mod entries;
mod explaining;
mod limits;
mod missing;
mod operator;
mod outcomes;
mod overrides;
mod penalties;
mod responses;
mod sign_in;
mod support;
