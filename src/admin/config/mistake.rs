//! A mistake of a configuration as the API shows it.

use serde::Serialize;
use utoipa::ToSchema;

/// What is wrong in the configuration, as `portcullis check --format json` prints it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct Mistake {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// `error`, or `warning` where the configuration can be used.
    pub severity: &'static str,
    pub message: String,
    /// What to write instead.
    #[schema(required)]
    pub help: Option<String>,
}
