//! `portcullis demo`: a sample application with a limited login, to be tried with curl.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::{io, thread};

use anyhow::Context;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::BytesRejection;
use axum::response::{Html, IntoResponse, Response};
use axum::{Json, Router};
use http::header::LOCATION;
use http::{Method, StatusCode, Uri};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::{output, run};
use crate::app::takeover::TakeoverOptions;
use crate::app::{App, Origin};
use crate::cli::program::Exit;
use crate::config;
use crate::config::inline::Flags;

/// Low enough to be reached with a few curl commands, high enough to log in at the first try.
const LIMITS: [&str; 2] = ["POST /login client_ip 5/minute", "POST /login param.username 10/minute"];

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The address to accept requests on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The address of the admin listener: health, metrics and the API [default: 127.0.0.1:9090, or a free port where
    /// that is taken]
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
    /// Run the sample application alone on this address, for a gateway elsewhere
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["listen", "admin"])]
    application_only: Option<SocketAddr>,
}

pub(super) fn demo(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(address) = arguments.application_only {
        let started = |address| say(&format!("A sample login application runs on {address}."));
        serve(address, started).with_context(|| format!("cannot listen on {address}"))?;
        return Ok(Exit::Done);
    }
    let application = start().context("cannot start the sample application")?;
    let flags = Flags {
        upstream: format!("http://{application}"),
        listen: Some(arguments.listen.to_string()),
        admin: Some(arguments.admin.unwrap_or_else(default_or_free).to_string()),
        limits: LIMITS.map(str::to_owned).into(),
    };
    let introduce = |app: &App| say(&introduction(app, application));
    run::serve(Arc::new(move || config::inline(&flags)), &Origin::Flags, &TakeoverOptions::default(), introduce)
}

/// The demo goes on without its words.
fn say(text: &str) {
    if let Err(error) = output::print(text) {
        output::print_error(&format!("{error:#}"));
    }
}

/// The default admin address, which the other commands use, or a free port where that is taken.
fn default_or_free() -> SocketAddr {
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, 9090));
    if std::net::TcpListener::bind(default).is_ok() { default } else { SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
}

fn introduction(app: &App, application: SocketAddr) -> String {
    let gateway = app.addresses().first().map(ToString::to_string).unwrap_or_default();
    let admin = app.admin_address().map(|address| address.to_string()).unwrap_or_default();
    let [by_client, by_name] = LIMITS;
    format!(
        "
A sample login application runs on {application}, the gateway in front of it on {gateway}.
The login has two limits, `{by_client}` and `{by_name}`. All other requests pass.

Try in another terminal:

  # the application, through the gateway
  curl -i http://{gateway}/

  # six wrong passwords: the application answers 401 to five, the gateway answers 429 to the sixth
  for i in 1 2 3 4 5 6; do
    curl -s -o /dev/null -w '%{{http_code}}\\n' -d 'username=alice&password=wrong' http://{gateway}/login
  done

  # the denial: Retry-After, RateLimit and a problem document; the application sees nothing of it
  curl -i -d 'username=alice&password=wrong' http://{gateway}/login

  # the same denial as a browser sees it
  curl -i -H 'Accept: text/html' -d 'username=alice&password=wrong' http://{gateway}/login

  # another spelling of the path is the same route: still 429
  curl -i -d 'username=alice&password=wrong' http://{gateway}//LOGIN/

  # the login form itself is not limited: 200
  curl -i http://{gateway}/login

After a minute the right password (alice, open sesame) gets a 302:

  curl -i -d 'username=alice' --data-urlencode 'password=open sesame' http://{gateway}/login

The admin listener is on {admin}:

  export PORTCULLIS_ADMIN=http://{admin}
  portcullis health
  portcullis limits list
  # another spelling of the name is the same account
  portcullis limits show limit-2 param.username=Àlice
  portcullis bans add 127.0.0.1 --for 1m

Or log in with a browser at http://{gateway}/login. Ctrl-C ends it.
"
    )
}

// The application of the demo: a login form that answers every attempt at once.

const USER: &str = "alice";

const PASSWORD: &str = "open sesame";

const MAX_FORM: usize = 16 * 1024;

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

fn page(status: StatusCode, content: &str) -> Response {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Sample application</title>\n\
         <style>{STYLE}</style>\n<main>{content}</main>\n</html>\n"
    );
    (status, Html(html)).into_response()
}

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
