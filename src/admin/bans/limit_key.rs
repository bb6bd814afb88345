//! Finds the key of a limit that an operator names.

use std::borrow::Cow;

use crate::admin::AdminState;
use crate::admin::problem::Problem;
use crate::decision::operator::LimitQuery;

/// The key of these selectors and values. A `distinct` value is not part of a key, so it is refused.
pub(super) fn limit_key(
    state: &AdminState,
    limit: &str,
    values: &[(Cow<'_, str>, Cow<'_, str>)],
) -> Result<LimitQuery, Problem> {
    let policy = state.policy.load();
    let query = LimitQuery::new(&policy, limit, values, None, &state.store.hashers())
        .map_err(|error| Problem::invalid_query(&error))?;
    if values.len() > query.selectors.len() {
        return Err(Problem::bad_request("the `distinct` value of this limit is not part of its key: leave it out"));
    }
    Ok(query)
}
