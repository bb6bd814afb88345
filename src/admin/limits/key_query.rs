//! Reads which limit and key a request names.

use std::borrow::Cow;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;

use crate::admin::AdminState;
use crate::admin::problem::Problem;
use crate::decision::operator::LimitQuery;

/// Whether the query may have a `cost`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CostParameter {
    Allowed,
    /// The query charges nothing, so `cost` is read as a part of the key.
    NotAllowed,
}

/// The limit of the path, and the key of the query's parameters.
pub(super) fn key_query(
    state: &AdminState,
    name: Result<Path<String>, PathRejection>,
    query: Option<&str>,
    cost_parameter: CostParameter,
) -> Result<LimitQuery, Problem> {
    let Ok(Path(name)) = name else { return Err(Problem::bad_request("the name of the limit is not UTF-8")) };
    let mut values: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
    let mut cost = None;
    if cost_parameter == CostParameter::Allowed {
        let mut costs = values.extract_if(.., |(name, _)| name == "cost");
        if let Some((_, text)) = costs.next() {
            let number = text.parse().map_err(|_| Problem::bad_request("`cost` is a whole number from 1"))?;
            cost = Some(number);
        }
        if costs.next().is_some() {
            return Err(Problem::bad_request("several values for `cost`"));
        }
    }
    let policy = state.policy.load();
    LimitQuery::new(&policy, &name, &values, cost, &state.store.hashers())
        .map_err(|error| Problem::invalid_query(&error))
}
