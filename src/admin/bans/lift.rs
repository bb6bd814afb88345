//! Lifts bans in the store.

use std::sync::Arc;

use http::StatusCode;
use tokio::task::JoinSet;
use tracing::info;

use super::ban_response::log_name;
use crate::admin::AdminState;
use crate::admin::problem::Problem;
use crate::key::KeyHash;
use crate::store::Store;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;

/// Lifts those of these bans that exist, and returns them. Their keys are reset too, because otherwise the next request
/// would begin the next ban.
pub(super) async fn lift(state: &AdminState, ids: &[BanId]) -> Result<Vec<Ban>, Problem> {
    let mut all_lifted = Vec::new();
    for chunk in ids.chunks(MAX_CONCURRENT) {
        let mut lifting = JoinSet::new();
        for &id in chunk {
            let store = Arc::clone(&state.store);
            lifting.spawn(async move { store.lift(id).await });
        }
        let answers = lifting.join_all().await;
        let is_redis_down = answers.iter().any(Result::is_err);
        let lifted: Vec<_> = answers.into_iter().filter_map(|answer| answer.ok().flatten()).collect();
        // A reset that fails does not undo the lift: what was counted ends with its window.
        let _ = state.store.reset(&lifted.iter().filter_map(key).collect::<Vec<_>>()).await;
        for ban in &lifted {
            info!(ban = %ban.id, "an operator lifted the ban of {}", log_name(ban));
        }
        all_lifted.extend(lifted);
        if is_redis_down {
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, NOT_LIFTED));
        }
    }
    Ok(all_lifted)
}

fn key(ban: &Ban) -> Option<KeyHash> {
    match &ban.subject {
        BanSubject::Key { key, .. } => Some(*key),
        BanSubject::Address(_) => None,
    }
}

/// How many calls to the store are under way at once.
const MAX_CONCURRENT: usize = 64;

const NOT_LIFTED: &str = "Redis does not answer: bans may still be in force";
