//! Why a question is not decided.

use super::description::BadDescription;
use crate::gateway::admit::framing::BadRequest;

/// Why a question has no decision for an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum BadQuestion {
    #[error("{0}")]
    Framing(#[from] BadRequest),
    #[error("decisions are answered under /auth and /auth/nginx")]
    Path,
    #[error("{0}")]
    Description(#[from] BadDescription),
}
