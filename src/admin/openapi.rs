//! The `OpenAPI` description of the admin listener, made from the handlers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::response::IntoResponse;
use http::Method;
use http::header::CONTENT_TYPE;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, ParameterStyle, PathItem};
use utoipa::openapi::schema::ComponentsBuilder;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Components, ContentBuilder, Info, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response};
use utoipa::{IntoParams, PartialSchema};

use super::auth::PathAccess;
use super::problem::PROBLEM_TYPE;
use crate::admin::input::is_strict;
use crate::api::problem::{Mistake, ProblemDocument};

const TOKEN: &str = "token";

const SESSION: &str = "session";

const NOT_TAKEN: &str = "NotTaken";

const AMBIGUOUS: &str = "Ambiguous";

const TOO_LONG: &str = "TooLong";

const NOT_JSON: &str = "NotJson";

const NO_TOKEN: &str = "NoToken";

const TOO_MANY: &str = "TooManyWrongTokens";

const FOREIGN: &str = "Foreign";

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
        .schema_from::<ProblemDocument>()
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
        .response(TOO_MANY, problem("This address sent five different wrong tokens in a minute. `Retry-After` says how long it waits."))
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

// The operations of a path in the description of the API.

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

// The parameters that name a key of a limit, for the description of the API.

const DESCRIPTION: &str = "One parameter for each part of the key, named by its selector: `client_ip=198.51.100.7&param.username=alice`. Values \
     are normalized like those of requests: names are case-folded and trimmed, addresses are cut to the prefix of the \
     key. Requests without that part share the empty value. A key of `[]` takes no parameters. For a limit with \
     `distinct`, one of its values may be given too, named the same way. Left out, it is the empty value.";

/// One parameter for each part of the key. A handler reads them from the query by itself, because their names are those
/// of the selectors.
#[derive(Debug)]
pub(super) enum KeyParts {}

impl IntoParams for KeyParts {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parts = ParameterBuilder::new()
            .name("parts")
            .parameter_in(ParameterIn::Query)
            .style(Some(ParameterStyle::Form))
            .explode(Some(true))
            .description(Some(DESCRIPTION))
            .schema(Some(BTreeMap::<String, String>::schema()));
        vec![parts.build()]
    }
}
