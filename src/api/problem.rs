//! Why a request to the API failed, and how a reload ended.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error as the API shows it (RFC 9457).
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What is wrong and what was expected.
    pub detail: String,
    /// Only of a reload that was refused.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mistakes: Option<Vec<Mistake>>,
}

/// What is wrong in the configuration, as `portcullis check --format json` prints it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Mistake {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// `error`, or `warning` where the configuration can be used.
    pub severity: String,
    pub message: String,
    /// What to write instead.
    #[schema(required)]
    pub help: Option<String>,
}

/// The configuration was read anew.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Reloaded)]
pub struct ReloadedResponse {
    /// When it came into force.
    #[schema(format = DateTime)]
    pub loaded: String,
    /// The settings whose change waits for the next start: `store.redis.url`. Left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
}
