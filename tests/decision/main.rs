//! The decision from end to end: a request in, the memory store between, what becomes of it out.

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
