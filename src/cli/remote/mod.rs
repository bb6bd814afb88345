//! Commands that talk to a running gateway over its admin listener.

pub(super) mod client;
pub(super) mod health;
pub(super) mod limits;

use std::path::PathBuf;

use anyhow::Context;
use anyhow::bail;
use http::Method;
use http::StatusCode;
use serde_json::Value;

use self::client::Answer;
use self::client::Client;
use super::Exit;
use super::output;

/// Which gateway is asked, and who asks.
#[derive(Clone, Debug, clap::Args)]
struct Gateway {
    /// Where the gateway's admin listener is
    #[arg(long, value_name = "URL", env = "PORTCULLIS_ADMIN", default_value = DEFAULT_ADMIN)]
    admin: String,
    /// A file with the token of the admin API; `PORTCULLIS_TOKEN` is the token itself
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

const DEFAULT_ADMIN: &str = "http://127.0.0.1:9090";

impl Gateway {
    fn client(&self) -> anyhow::Result<Client> {
        Client::new(or_usual(&self.admin), self.token()?.as_deref())
    }

    /// What is named on the command line wins over the environment.
    fn token(&self) -> anyhow::Result<Option<String>> {
        let text = match &self.token_file {
            Some(file) => std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the token file `{}`", file.display()))?,
            None => std::env::var("PORTCULLIS_TOKEN").unwrap_or_default(),
        };
        let token = text.trim();
        if token.is_empty() && self.token_file.is_some() {
            bail!("the token file is empty");
        }
        Ok((!token.is_empty()).then(|| token.to_owned()))
    }

    /// Asks, and hands on what came back with a status of success: JSON, or nothing at all. Everything else is told
    /// to the person who asked, and is how the command ends.
    fn ask(&self, method: Method, target: &str) -> anyhow::Result<Result<Value, Exit>> {
        let client = self.client()?;
        let Answer { status, body } = match client.ask(method, target) {
            Ok(answer) => answer,
            Err(error) => {
                output::complain(&format!("the gateway at {} could not be reached: {error}", client.authority()));
                return Ok(Err(Exit::Unreachable));
            }
        };
        if status == StatusCode::NO_CONTENT {
            return Ok(Ok(Value::Null));
        }
        let content: Option<Value> = serde_json::from_slice(&body).ok();
        let wrong = match (status, content) {
            (status, Some(content)) if status.is_success() => return Ok(Ok(content)),
            (StatusCode::UNAUTHORIZED, _) if client.has_token() => "the gateway has another token".to_owned(),
            (StatusCode::UNAUTHORIZED, _) => {
                "the gateway wants its token: `--token-file FILE`, or PORTCULLIS_TOKEN in the environment".to_owned()
            }
            (_, Some(problem)) if problem["detail"].is_string() => {
                problem["detail"].as_str().unwrap_or_default().to_owned()
            }
            (status, _) => format!("what answers at {} is no admin API: it said {status}", client.authority()),
        };
        output::complain(&wrong);
        Ok(Err(Exit::Wrong))
    }
}

/// A variable that is set to nothing says nothing.
fn or_usual(admin: &str) -> &str {
    if admin.is_empty() { DEFAULT_ADMIN } else { admin }
}
