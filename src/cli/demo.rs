//! `portcullis demo`: the main job in one process, to be tried with curl.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;

use super::Exit;
use super::output;
use super::run;
use super::sample;
use crate::app::App;
use crate::app::serve::Origin;
use crate::app::serve::Succession;
use crate::config;
use crate::config::inline::Flags;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Where to accept requests
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Run the sample application alone, on this address: for a gateway elsewhere to stand in front of
    #[arg(long, value_name = "ADDR", conflicts_with = "listen")]
    application_only: Option<SocketAddr>,
}

/// Tight enough to be seen by hand, loose enough to log in at the first try.
const LIMIT: &str = "POST /login client_ip 5/minute";

pub(super) fn demo(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(address) = arguments.application_only {
        let started = |address| output::say(&format!("A sample login application runs on {address}."));
        sample::serve(address, started).with_context(|| format!("cannot listen on {address}"))?;
        return Ok(Exit::Done);
    }
    let application = sample::start().context("cannot start the sample application")?;
    let flags = Flags {
        upstream: format!("http://{application}"),
        listen: Some(arguments.listen.to_string()),
        limits: vec![LIMIT.to_owned()],
    };
    let introduce = |app: &App| output::say(&introduction(app, application));
    run::serve(Arc::new(move || config::inline(&flags)), &Origin::Flags, &Succession::default(), introduce)
}

fn introduction(app: &App, application: SocketAddr) -> String {
    let gateway = app.addresses().first().map(ToString::to_string).unwrap_or_default();
    format!(
        "
A sample login application runs on {application}, the gateway in front of it on {gateway}.
One limit stands on the login, `{LIMIT}`. Everything else passes untouched.

Try in another terminal:

  # the application, through the gateway
  curl -i http://{gateway}/

  # a wrong password six times: the application answers 401 five times, the gateway 429 the sixth
  for i in 1 2 3 4 5 6; do
    curl -s -o /dev/null -w '%{{http_code}}\\n' -d 'username=alice&password=wrong' http://{gateway}/login
  done

  # the denial itself: Retry-After, RateLimit, and a problem document; nothing reaches the application
  curl -i -d 'username=alice&password=wrong' http://{gateway}/login

  # as a browser sees it
  curl -i -H 'Accept: text/html' -d 'username=alice&password=wrong' http://{gateway}/login

  # another spelling is the same route: still 429
  curl -i -d 'username=alice&password=wrong' http://{gateway}//LOGIN/

  # looking at the form is not limited: 200
  curl -i http://{gateway}/login

In a minute the right password (alice, open sesame) is answered with 302:

  curl -i -d 'username=alice' --data-urlencode 'password=open sesame' http://{gateway}/login

Or log in with a browser at http://{gateway}/login. Ctrl-C ends it.
"
    )
}
