//! The application of the demo: a login form that answers every attempt at once.

use std::io;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::thread;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::BytesRejection;
use axum::response::Html;
use axum::response::IntoResponse;
use axum::response::Response;
use http::Method;
use http::StatusCode;
use http::Uri;
use http::header::LOCATION;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

/// Serves on a free port of this machine until the process ends.
pub(super) fn start() -> io::Result<SocketAddr> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    thread::Builder::new().name("sample".to_owned()).spawn(move || runtime.block_on(accept(listener)))?;
    Ok(address)
}

/// Serves on this address until a signal ends it. Calls `started` with the address.
pub(super) fn serve(address: SocketAddr, started: impl FnOnce(SocketAddr)) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // The first process of a container gets only the signals that it asks for.
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let listener = TcpListener::bind(address).await?;
        started(listener.local_addr()?);
        tokio::select! {
            served = accept(listener) => served,
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    })
}

async fn accept(listener: TcpListener) -> io::Result<()> {
    let application = Router::new().fallback(answer).layer(DefaultBodyLimit::max(MAX_FORM));
    axum::serve(listener, application).await
}

async fn answer(method: Method, target: Uri, body: Result<Bytes, BytesRejection>) -> Response {
    match (method, target.path().trim_end_matches('/')) {
        (Method::GET | Method::HEAD, "") => page(StatusCode::OK, HOME),
        (Method::GET | Method::HEAD, "/login") => page(StatusCode::OK, &login_form("")),
        (Method::GET | Method::HEAD, "/account") => page(StatusCode::OK, ACCOUNT),
        // As a gateway answers, so that `portcullis health` asks both.
        (Method::GET | Method::HEAD, "/healthz") => Json(json!({"status": "ok"})).into_response(),
        (Method::POST, path) if path.trim_matches('/').to_ascii_lowercase().starts_with("login") => log_in(body),
        _ => page(StatusCode::NOT_FOUND, "<h1>Nothing here</h1><p><a href=\"/\">Home</a></p>"),
    }
}

fn log_in(form: Result<Bytes, BytesRejection>) -> Response {
    let Ok(form) = form else { return page(StatusCode::BAD_REQUEST, &login_form("That was no form.")) };
    let field = |name: &str| form_urlencoded::parse(&form).find(|(key, _)| key == name).map(|(_, value)| value);
    let is_right = field("username").as_deref() == Some(USER) && field("password").as_deref() == Some(PASSWORD);
    if !is_right {
        return page(StatusCode::UNAUTHORIZED, &login_form("Wrong user name or password."));
    }
    ([(LOCATION, "/account")], page(StatusCode::FOUND, "")).into_response()
}

const USER: &str = "alice";
const PASSWORD: &str = "open sesame";
const MAX_FORM: usize = 16 * 1024;

fn page(status: StatusCode, content: &str) -> Response {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Sample application</title>\n\
         <style>{STYLE}</style>\n<main>{content}</main>\n</html>\n"
    );
    (status, Html(html)).into_response()
}

const STYLE: &str = "\
body{font:1rem/1.5 system-ui,sans-serif;background:#f4f2ee;color:#222;display:grid;place-items:center;min-height:90vh}\
main{background:#fff;padding:2rem 2.5rem;border-radius:.75rem;box-shadow:0 1px 12px #0002;width:20rem}\
h1{font-size:1.4rem;margin:0 0 1rem}label{display:block;margin:.75rem 0 .25rem}\
input{width:100%;box-sizing:border-box;padding:.5rem;font:inherit;border:1px solid #bbb;border-radius:.4rem}\
button{margin-top:1.25rem;width:100%;padding:.6rem;font:inherit;border:0;border-radius:.4rem;background:#245;color:#fff}\
.error{color:#a22}:root{color-scheme:light dark}\
@media(prefers-color-scheme:dark){body{background:#16181c;color:#e8e6e1}main{background:#1f2228}\
input{border-color:#4a4f5a}a{color:#8cc4e6}.error{color:#f09a8a}}";

const HOME: &str = "<h1>Sample application</h1><p>It knows nothing of limits. <a href=\"/login\">Log in</a></p>";

const ACCOUNT: &str = "<h1>Welcome, alice</h1><p>You are logged in. <a href=\"/\">Home</a></p>";

fn login_form(error: &str) -> String {
    format!(
        "<h1>Log in</h1><p class=\"error\">{error}</p>\
         <form method=\"post\" action=\"/login\">\
         <label for=\"username\">User name</label><input id=\"username\" name=\"username\" autocomplete=\"username\">\
         <label for=\"password\">Password</label>\
         <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\">\
         <button>Log in</button></form>"
    )
}
