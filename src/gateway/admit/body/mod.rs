//! The body of a request on its way from the client to the application.

mod bounds;
mod client_body;
mod described_body;
mod replay_buffer;
mod request_body;
mod streaming_body;

pub use self::bounds::BodyBounds;
pub use self::client_body::ClientBody;
pub use self::described_body::DescribedBody;
pub use self::described_body::DescribedBodyWriter;
pub use self::described_body::DescribedEnd;
pub use self::described_body::may_have_body;
pub use self::request_body::Peeked;
pub use self::request_body::RequestBody;
pub use self::streaming_body::BodyAborted;

#[cfg(test)]
mod tests;
