//! Which gateway a command talks to, and one exchange with its admin API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use http::{Method, StatusCode};
use serde_json::Value;

use super::client::{AdminClient, AdminResponse, LONG_TIMEOUT, TIMEOUT};
use crate::cli::output;
use crate::cli::program::{DEFAULT_FILE, Exit, Format};
use crate::config;
use crate::config::source;

const DEFAULT_ADMIN: &str = "http://127.0.0.1:9090";

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

impl GatewayArguments {
    /// The gateway that a command line names which is not written to its end.
    pub(super) fn named_in(line: &str) -> Self {
        let value = |option: &str| {
            let words = line.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            let following = words.clone().zip(words.clone().skip(1)).find(|(word, _)| *word == option);
            let joined = words.clone().find_map(|word| word.strip_prefix(option)?.strip_prefix('='));
            following.map(|(_, value)| value).or(joined).map(str::to_owned)
        };
        let admin = value("--admin").or_else(|| std::env::var("PORTCULLIS_ADMIN").ok());
        Self {
            admin: admin.unwrap_or_else(|| DEFAULT_ADMIN.to_owned()),
            token_file: value("--token-file").map(PathBuf::from),
        }
    }

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
                let read = source::read_text(file).map_err(anyhow::Error::from);
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
    pub(super) fn send_patiently(
        &self,
        method: Method,
        target: &str,
        document: &Value,
    ) -> anyhow::Result<Result<Value, Exit>> {
        self.exchange(method, target, Some(document), LONG_TIMEOUT)
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

// The names of things that a shell completes: from the running gateway, or from the configuration where none answers.

/// A person waits with a finger on the key.
const PATIENCE: Duration = Duration::from_secs(2);

/// What has names.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(in crate::cli) enum Things {
    Limits,
    Bans,
}

/// Prints the names, one a line. `line` is the command line so far, in which the gateway may be named.
pub(in crate::cli) fn print_names(things: Things, line: &str) -> anyhow::Result<Exit> {
    let names = asked(things, &GatewayArguments::named_in(line)).unwrap_or_else(|| configured(things));
    for name in names.iter().filter(|name| !name.contains(char::is_control)) {
        output::print(name)?;
    }
    Ok(Exit::Done)
}

/// What the running gateway says. `None`: it does not answer, or not to us.
fn asked(things: Things, gateway: &GatewayArguments) -> Option<Vec<String>> {
    let (target, field) = match things {
        Things::Limits => ("/api/v1/limits", "name"),
        Things::Bans => ("/api/v1/bans", "id"),
    };
    let answer = gateway.client().ok()?.ask(Method::GET, target, None, PATIENCE).ok()?;
    let document: Value = serde_json::from_slice(&answer.body).ok().filter(|_| answer.status.is_success())?;
    let entries = document.as_array()?.iter();
    Some(entries.filter_map(|entry| entry[field].as_str()).map(str::to_owned).collect())
}

/// What stands in the configuration here. Bans stand in none.
fn configured(things: Things) -> Vec<String> {
    let settings = match things {
        Things::Limits => config::load(Path::new(DEFAULT_FILE)).ok(),
        Things::Bans => None,
    };
    let limits = settings.into_iter().flat_map(|settings| settings.policy.limits);
    limits.map(|limit| limit.name.to_string()).collect()
}
