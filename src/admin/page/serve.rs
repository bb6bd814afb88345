//! Serves the files of the dashboard.

use std::sync::Arc;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderMap;
use http::StatusCode;
use http::header::CACHE_CONTROL;
use http::header::CONTENT_SECURITY_POLICY;
use http::header::CONTENT_TYPE;
use http::header::ETAG;
use http::header::IF_NONE_MATCH;
use http::header::REFERRER_POLICY;
use http::header::X_CONTENT_TYPE_OPTIONS;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::files::PageFile;
use crate::admin::AdminState;
use crate::admin::problem::Problem;

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new().routes(routes!(index)).routes(routes!(file))
}

/// The dashboard
///
/// For a browser.
#[utoipa::path(
    get,
    path = "/",
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 304, description = "The browser has this version of it."),
    )
)]
async fn index(headers: HeaderMap) -> Response {
    answer(PageFile::index(), &headers)
}

/// A file of the dashboard
///
/// A style sheet, a script or a picture that the page names.
#[utoipa::path(
    get,
    path = "/page/{name}",
    params(("name" = String, Path)),
    responses(
        (status = 200, description = "The file.", content(
            (String = "text/css"),
            (String = "text/javascript"),
            (String = "image/svg+xml"),
        )),
        (status = 304, description = "The browser has this version of it."),
        (status = 404, description = "There is no such file."),
    )
)]
async fn file(name: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Result<Response, Problem> {
    let file = name.ok().and_then(|Path(name)| PageFile::named(&name));
    let file = file.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "the dashboard has no such file"))?;
    Ok(answer(file, &headers))
}

fn answer(file: &PageFile, headers: &HeaderMap) -> Response {
    let etag = file.etag();
    // A new version of the gateway has new files: browsers ask each time whether theirs is current.
    let head = [
        (CACHE_CONTROL, "no-cache"),
        (ETAG, &*etag),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let is_current = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes());
    if is_current {
        return (StatusCode::NOT_MODIFIED, head).into_response();
    }
    (head, [(CONTENT_TYPE, file.content_type)], file.text).into_response()
}

/// Everything comes from this listener, nothing is inline, no other page frames this one, and no script makes markup from
/// text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
