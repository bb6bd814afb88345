//! Which gateway a command talks to, and one exchange with its admin API.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use anyhow::bail;
use http::Method;
use http::StatusCode;
use serde_json::Value;

use super::client::AdminClient;
use super::client::AdminResponse;
use super::client::LONG_TIMEOUT;
use super::client::TIMEOUT;
use crate::cli::arguments::Format;
use crate::cli::exit::Exit;
use crate::cli::output;

use crate::config::text_file;

/// The gateway to talk to, and the token for it.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct GatewayArguments {
    /// The URL of the gateway's admin listener
    #[arg(long, value_name = "URL", env = "PORTCULLIS_ADMIN", default_value = DEFAULT_ADMIN)]
    admin: String,
    /// A file with the token of the admin API; `PORTCULLIS_TOKEN` is the token itself
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// The arguments that most of these commands take.
#[derive(Debug, clap::Args)]
pub(super) struct RemoteArguments {
    #[command(flatten)]
    pub(super) gateway: GatewayArguments,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
}

const DEFAULT_ADMIN: &str = "http://127.0.0.1:9090";

impl GatewayArguments {
    pub(super) fn client(&self) -> anyhow::Result<AdminClient> {
        self.client_at(or_default(&self.admin))
    }

    /// A client of another admin listener than `--admin`, with the same token.
    pub(super) fn client_at(&self, url: &str) -> anyhow::Result<AdminClient> {
        AdminClient::new(url, self.token()?.as_deref())
    }

    /// The command line wins over the environment.
    fn token(&self) -> anyhow::Result<Option<String>> {
        let text = match &self.token_file {
            Some(file) => {
                let read = text_file::read_text(file).map_err(anyhow::Error::from);
                read.with_context(|| format!("cannot read the token file `{}`", file.display()))?
            }
            None => std::env::var("PORTCULLIS_TOKEN").unwrap_or_default(),
        };
        let token = text.trim();
        if token.is_empty() && self.token_file.is_some() {
            bail!("the token file is empty");
        }
        Ok((!token.is_empty()).then(|| token.to_owned()))
    }

    /// Sends a request and returns the JSON of a successful response, or `null`. Everything else is printed and is how
    /// the command ends.
    pub(super) fn ask(&self, method: Method, target: &str) -> anyhow::Result<Result<Value, Exit>> {
        self.exchange(method, target, None, TIMEOUT)
    }

    /// The same with a long timeout, for requests that take a while.
    pub(super) fn ask_patiently(&self, method: Method, target: &str) -> anyhow::Result<Result<Value, Exit>> {
        self.exchange(method, target, None, LONG_TIMEOUT)
    }

    /// The same with a JSON body.
    pub(super) fn send(&self, method: Method, target: &str, document: &Value) -> anyhow::Result<Result<Value, Exit>> {
        self.exchange(method, target, Some(document), TIMEOUT)
    }

    /// The same for a response that is text of this media type.
    pub(super) fn ask_for_text(&self, target: &str, media_type: &'static str) -> anyhow::Result<Result<String, Exit>> {
        let client = self.client()?.accepting(media_type);
        let answer = match client.ask(Method::GET, target, None, TIMEOUT) {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(report_unreachable(&client, &error))),
        };
        if answer.status.is_success() {
            return Ok(Ok(String::from_utf8_lossy(&answer.body).into_owned()));
        }
        Ok(read_response(&client, &answer).map(|_| String::new()))
    }

    fn exchange(
        &self,
        method: Method,
        target: &str,
        document: Option<&Value>,
        patience: Duration,
    ) -> anyhow::Result<Result<Value, Exit>> {
        Ok(match self.answer(method, target, document, patience)? {
            Ok((client, answer)) => read_response(&client, &answer),
            Err(exit) => Err(exit),
        })
    }

    /// The whole answer, whatever its status, and the client that got it.
    pub(super) fn answer(
        &self,
        method: Method,
        target: &str,
        document: Option<&Value>,
        patience: Duration,
    ) -> anyhow::Result<Result<(AdminClient, AdminResponse), Exit>> {
        let client = self.client()?;
        let answer = match client.ask(method, target, document, patience) {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(report_unreachable(&client, &error))),
        };
        Ok(Ok((client, answer)))
    }
}

/// The JSON of a response, or `null`. Prints an error.
pub(super) fn read_response(
    client: &AdminClient,
    AdminResponse { status, body, .. }: &AdminResponse,
) -> Result<Value, Exit> {
    if *status == StatusCode::NO_CONTENT {
        return Ok(Value::Null);
    }
    let content: Option<Value> = serde_json::from_slice(body).ok();
    let wrong = match (*status, content) {
        (status, Some(content)) if status.is_success() => return Ok(content),
        (StatusCode::UNAUTHORIZED, _) if client.has_token() => "the gateway does not accept this token".to_owned(),
        (StatusCode::UNAUTHORIZED, _) => {
            "the gateway needs its token: `--token-file FILE`, or PORTCULLIS_TOKEN in the environment".to_owned()
        }
        (_, Some(problem)) if problem["detail"].is_string() => {
            problem["detail"].as_str().unwrap_or_default().to_owned()
        }
        (status, _) => {
            format!("the server at {} is not the admin API of a gateway: it answered {status}", client.authority())
        }
    };
    output::print_error(&wrong);
    Err(Exit::Wrong)
}

/// Prints that the gateway could not be reached.
pub(super) fn report_unreachable(client: &AdminClient, error: &str) -> Exit {
    output::print_error(&format!("the gateway at {} could not be reached: {error}", client.authority()));
    Exit::Unreachable
}

/// A variable that is set to an empty text counts as not set.
fn or_default(admin: &str) -> &str {
    if admin.is_empty() { DEFAULT_ADMIN } else { admin }
}
