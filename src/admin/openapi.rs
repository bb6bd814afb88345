//! The `OpenAPI` description of the admin listener, made from the handlers.

use std::sync::Arc;

use axum::Extension;
use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;
use utoipa::openapi::Components;
use utoipa::openapi::ContentBuilder;
use utoipa::openapi::Info;
use utoipa::openapi::InfoBuilder;
use utoipa::openapi::OpenApi;
use utoipa::openapi::OpenApiBuilder;
use utoipa::openapi::Ref;
use utoipa::openapi::RefOr;
use utoipa::openapi::Response;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::ComponentsBuilder;
use utoipa::openapi::security::ApiKey;
use utoipa::openapi::security::ApiKeyValue;
use utoipa::openapi::security::HttpAuthScheme;
use utoipa::openapi::security::HttpBuilder;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::security::SecurityScheme;

use super::auth::PathAccess;
use super::config::Mistake;
use super::operations::operations;
use super::problem::PROBLEM_TYPE;
use super::problem::ProblemDocument;
use super::taken_input::is_strict;

/// The description as JSON text, made once when the listener starts.
#[derive(Clone, Debug)]
pub(super) struct Document(Arc<str>);

/// This document
#[utoipa::path(
    get,
    path = "/openapi.json",
    responses((status = 200, description = "The document.", body = Object, content_type = "application/json"))
)]
pub(super) async fn document(Extension(Document(text)): Extension<Document>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], text.to_string())
}

/// What holds for the whole API. The router adds the paths and their schemas.
pub(super) fn base() -> OpenApi {
    OpenApiBuilder::new()
        .info(info())
        .components(Some(components()))
        .security(Some([TOKEN, SESSION].map(|scheme| SecurityRequirement::new::<_, _, &str>(scheme, []))))
        .build()
}

impl Document {
    /// Adds what all operations have in common: the refusals of the guard, and the form of errors.
    pub(super) fn complete(mut description: OpenApi) -> Self {
        for (path, item) in &mut description.paths.paths {
            for (method, operation) in operations(item) {
                complete(operation, PathAccess::of(&method, path), is_strict(&method, path));
            }
        }
        Self(description.to_json().expect("names and texts are JSON").into())
    }
}

fn complete(operation: &mut Operation, access: PathAccess, is_strict: bool) {
    // The name of a function in Rust says nothing to those who call the API.
    operation.operation_id = None;
    operation.tags = None;
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        if let RefOr::T(response) = response
            && response.content.is_empty()
            && !status.starts_with('2')
        {
            *response = problem(&response.description);
        }
    }
    let mut refuse = |status: &str, name| {
        responses.entry(status.to_owned()).or_insert_with(|| RefOr::Ref(Ref::from_response_name(name)));
    };
    if is_strict {
        refuse("400", NOT_TAKEN);
    } else if access != PathAccess::Monitoring {
        refuse("400", AMBIGUOUS);
    }
    if operation.request_body.is_some() {
        refuse("413", TOO_LONG);
        refuse("415", NOT_JSON);
    }
    if access == PathAccess::Api {
        responses.insert("401".to_owned(), RefOr::Ref(Ref::from_response_name(NO_TOKEN)));
        responses.insert("429".to_owned(), RefOr::Ref(Ref::from_response_name(TOO_MANY)));
    } else {
        operation.security = Some(Vec::new());
    }
    if access != PathAccess::Monitoring {
        responses.insert("403".to_owned(), RefOr::Ref(Ref::from_response_name(FOREIGN)));
    }
}

fn info() -> Info {
    InfoBuilder::new()
        .title("portcullis admin API")
        .version("1")
        .description(Some(
            "Errors are problem documents (RFC 9457). Where `admin.token_file` is set, everything but /healthz, /readyz, \
             /metrics and the files of the dashboard needs the token, or the cookie of a session that it opened. Answers \
             name addresses and user names where an operator needs them, and never a token.",
        ))
        .build()
}

fn components() -> Components {
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "The line in `admin.token_file`. Without that setting the API is open to programs of the same machine.",
    ));
    let session = ApiKeyValue::with_description(
        "portcullis_session_9090",
        "What POST /session sets, named by the port that the browser asks, and over TLS with `__Host-` before it. A change also needs the field `X-CSRF-Token` with the \
         `csrf_token` of the session.",
    );
    ComponentsBuilder::new()
        .schema_from::<ProblemDocument<'_>>()
        .schema_from::<Mistake>()
        .security_scheme(TOKEN, SecurityScheme::Http(token.build()))
        .security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(session)))
        .response(NOT_TAKEN, problem("The request has parameters or a body, and the operation takes none; or it is ambiguous."))
        .response(AMBIGUOUS, problem("The request has no `Host`, or several lines of `Host` or `Origin`."))
        .response(TOO_LONG, problem("The body is longer than 16 KiB."))
        .response(
            NOT_JSON,
            problem(
                "The body is called something else than JSON. One without a `Content-Type`, and one that is called \
                 `application/x-www-form-urlencoded` as `curl -d` calls every body, is read as JSON.",
            ),
        )
        .response(NO_TOKEN, problem("The token is missing or wrong."))
        .response(TOO_MANY, problem("This address sent five wrong tokens in a minute. `Retry-After` says how long it waits."))
        .response(
            FOREIGN,
            problem(
                "No token is configured, and the request comes from another machine or from a web page of another site, \
                 or its host is neither an address nor localhost. Or a session sent it from another site, or without its \
                 `X-CSRF-Token`.",
            ),
        )
        .build()
}

fn problem(description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    Response::builder().description(description).content(PROBLEM_TYPE, content).build()
}

const TOKEN: &str = "token";
const SESSION: &str = "session";
const NOT_TAKEN: &str = "NotTaken";
const AMBIGUOUS: &str = "Ambiguous";
const TOO_LONG: &str = "TooLong";
const NOT_JSON: &str = "NotJson";
const NO_TOKEN: &str = "NoToken";
const TOO_MANY: &str = "TooManyWrongTokens";
const FOREIGN: &str = "Foreign";
