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
/// would begin the next ban. Fails where Redis, which does not answer, has one of them, or may have and none was lifted.
pub(super) async fn lift(state: &AdminState, ids: &[BanId]) -> Result<Vec<Ban>, Problem> {
    let (mut all_lifted, mut in_redis, mut perhaps_in_redis) = (Vec::new(), 0, 0);
    for chunk in ids.chunks(MAX_CONCURRENT) {
        let mut lifting = JoinSet::new();
        for &id in chunk {
            let store = Arc::clone(&state.store);
            lifting.spawn(async move { (id, store.lift(id).await) });
        }
        let mut lifted = Vec::new();
        for (id, answer) in lifting.join_all().await {
            match answer {
                Ok(ban) => lifted.extend(ban),
                Err(_) if state.store.bans().find(id).is_some() => in_redis += 1,
                Err(_) => perhaps_in_redis += 1,
            }
        }
        // A reset that fails does not undo the lift: what was counted ends with its window.
        let _ = state.store.reset(&lifted.iter().filter_map(key).collect::<Vec<_>>()).await;
        for ban in &lifted {
            info!(ban = %ban.id, "an operator lifted the ban of {}", log_name(ban));
        }
        all_lifted.extend(lifted);
    }
    if in_redis > 0 || (perhaps_in_redis > 0 && all_lifted.is_empty()) {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, not_lifted(in_redis, all_lifted.len())));
    }
    Ok(all_lifted)
}

/// Says which bans stay in force. `in_redis`: how many Redis has; `lifted`: how many only this gateway had.
fn not_lifted(in_redis: usize, lifted: usize) -> String {
    let which = match in_redis {
        0 => "a ban that only Redis has stays in force".to_owned(),
        1 => "the ban stays in force".to_owned(),
        count => format!("{count} bans stay in force"),
    };
    let others = match lifted {
        0 => String::new(),
        1 => "; one that only this gateway knew is lifted".to_owned(),
        count => format!("; {count} that only this gateway knew are lifted"),
    };
    format!("Redis does not answer: {which} until it is back and you lift it again{others}")
}

fn key(ban: &Ban) -> Option<KeyHash> {
    match &ban.subject {
        BanSubject::Key { key, .. } => Some(*key),
        BanSubject::Address(_) => None,
    }
}

/// How many calls to the store are under way at once.
const MAX_CONCURRENT: usize = 64;
