//! The HTTP client for requests of the gateway itself: health checks, webhooks, documents that it fetches, and commands to the
//! admin API.
//!
//! It is hyper's. It follows no redirect, asks no proxy, and uses each connection for one request.

pub mod client;
pub mod document_url;
pub mod remote_document;

pub use self::client::Client;
pub use self::client::HttpsClient;
pub use self::client::builder;
pub use self::client::root_cause;
pub use self::client::tcp;
pub use self::client::verifying;
pub use self::document_url::DocumentUrl;
pub use self::document_url::InvalidDocumentUrl;
pub use self::remote_document::FetchError;
pub use self::remote_document::RemoteDocument;
