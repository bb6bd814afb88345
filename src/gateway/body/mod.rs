//! The body of a request on its way from the client to the application.

mod described_body;
pub mod expect;
mod request_body;
mod streaming_body;

pub use self::described_body::{DescribedBody, DescribedBodyWriter, DescribedEnd, may_have_body};
pub use self::request_body::{Peeked, RequestBody};
pub use self::streaming_body::{BodyAborted, BodyBounds, ClientBody};

#[cfg(test)]
mod tests;
