//! The settings for tokens.

use std::sync::Arc;

use crate::http_client::RemoteDocument;
use crate::jwt::KeySet;
use crate::jwt::TokenPlace;
use crate::jwt::Validity;

/// The settings of the `jwt` section.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSettings {
    pub place: TokenPlace,
    pub validity: Validity,
    pub keys: KeySource,
}

/// Where the keys come from.
#[derive(Clone, Debug, PartialEq)]
pub enum KeySource {
    /// A file, read with the configuration.
    File(Arc<KeySet>),
    /// Fetched while the gateway runs.
    Url(RemoteDocument),
}
