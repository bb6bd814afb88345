//! The operations of a path in the description of the API.

use http::Method;
use utoipa::openapi::path::Operation;
use utoipa::openapi::path::PathItem;

/// Each with its method.
pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let PathItem { get, post, put, patch, delete, .. } = item;
    let all = [
        (Method::GET, get),
        (Method::POST, post),
        (Method::PUT, put),
        (Method::PATCH, patch),
        (Method::DELETE, delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}
