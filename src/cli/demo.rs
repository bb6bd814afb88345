//! `portcullis demo`: a sample application with a limited login, to be tried with curl.

use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::sync::Arc;

use anyhow::Context;

use super::exit::Exit;
use super::output;
use super::run;
use super::sample;
use crate::app::App;
use crate::app::Origin;
use crate::app::takeover::TakeoverOptions;
use crate::config;
use crate::config::inline::Flags;

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

/// Low enough to be reached with a few curl commands, high enough to log in at the first try.
const LIMITS: [&str; 2] = ["POST /login client_ip 5/minute", "POST /login param.username 10/minute"];

pub(super) fn demo(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(address) = arguments.application_only {
        let started = |address| say(&format!("A sample login application runs on {address}."));
        sample::serve(address, started).with_context(|| format!("cannot listen on {address}"))?;
        return Ok(Exit::Done);
    }
    let application = sample::start().context("cannot start the sample application")?;
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
    if TcpListener::bind(default).is_ok() { default } else { SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
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
