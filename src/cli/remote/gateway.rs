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
        let value = |option: &str| WrittenLine::read(line).value_of(&[option]).map(str::to_owned);
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
    /// The selectors of the limit that is named.
    Keys,
    /// The ids of requests that were denied or held.
    Requests,
    /// Domains that Envoy asks about, where it is Envoy that asks.
    Domains,
    /// Entries of the descriptors of the domain that is named.
    Descriptors,
}

/// A command line that is not written to its end.
struct WrittenLine {
    /// The words that are complete.
    words: Vec<String>,
}

impl WrittenLine {
    /// Reads it as a shell does.
    fn read(line: &str) -> Self {
        let mut words = Vec::new();
        let (mut word, mut quote, mut is_escaped) = (None::<String>, None, false);
        for letter in line.chars() {
            match (letter, quote) {
                _ if is_escaped => {
                    word.get_or_insert_default().push(letter);
                    is_escaped = false;
                }
                ('\\', None | Some('"')) => is_escaped = true,
                ('\'' | '"', None) => {
                    word.get_or_insert_default();
                    quote = Some(letter);
                }
                (_, Some(open)) if letter == open => quote = None,
                (_, None) if letter.is_whitespace() => words.extend(word.take()),
                _ => word.get_or_insert_default().push(letter),
            }
        }
        Self { words }
    }

    /// The value of an option.
    fn value_of(&self, names: &[&str]) -> Option<&str> {
        let words = || self.words.iter().map(String::as_str);
        let following = words().zip(words().skip(1)).find(|(word, _)| names.contains(word)).map(|(_, value)| value);
        let joined =
            || words().find_map(|word| names.iter().find_map(|name| word.strip_prefix(name)?.strip_prefix('=')));
        following.or_else(joined)
    }

    /// The arguments behind the command that are no options.
    fn arguments(&self) -> Vec<&str> {
        let mut words = self.words.iter().skip(1).map(String::as_str).peekable();
        let mut arguments = Vec::new();
        while let Some(word) = words.next() {
            if word.starts_with('-') && word != "-" {
                if !FLAGS.contains(&word) && !word.contains('=') {
                    words.next();
                }
            } else {
                arguments.push(word);
            }
        }
        let commands = if matches!(arguments.first(), Some(&("limits" | "bans"))) { 2 } else { 1 };
        arguments.into_iter().skip(commands).collect()
    }

    /// The limit that it names.
    fn limit(&self) -> Option<&str> {
        let is_limits = self.words.get(1).is_some_and(|command| command == "limits");
        self.value_of(&["--limit"]).or_else(|| self.arguments().into_iter().next().filter(|_| is_limits))
    }

    /// Whether things of this kind stand where it ends.
    fn wants(&self, things: Things) -> bool {
        let is_option = self.words.last().is_some_and(|word| word == "--limit");
        let is_first = self.arguments().is_empty();
        let asks_envoy = self.value_of(&["--as"]) == Some("rls");
        match things {
            Things::Limits => is_option || is_first,
            Things::Requests => is_first,
            Things::Bans => !is_option,
            Things::Keys => !is_option && self.limit().is_some(),
            Things::Domains => asks_envoy && is_first,
            Things::Descriptors => asks_envoy && !is_first,
        }
    }
}

/// Options that take no value.
const FLAGS: [&str; 6] = ["--force", "--all", "--watch", "--help", "-h", "--takeover"];

/// Prints the names, one a line. `line` is the command line so far, in which the gateway may be named.
pub(in crate::cli) fn print_names(things: Things, line: &str) -> anyhow::Result<Exit> {
    let written = WrittenLine::read(line);
    if !written.wants(things) {
        return Ok(Exit::Done);
    }
    // A ban of a key is named by its limit.
    let things = if things == Things::Bans && written.limit().is_some() { Things::Keys } else { things };
    let gateway = GatewayArguments::named_in(line);
    let names = asked(things, &written, &gateway).unwrap_or_else(|| configured(things, &written));
    let given: Vec<_> = written.arguments().into_iter().filter_map(|word| Some(word.split_once('=')?.0)).collect();
    let is_new = |name: &&String| !name.strip_suffix('=').is_some_and(|name| given.contains(&name));
    for name in names.iter().filter(|name| !name.contains(char::is_control)).filter(is_new) {
        output::print(name)?;
    }
    Ok(Exit::Done)
}

/// What the running gateway says. `None`: it does not answer, or not to us.
fn asked(things: Things, written: &WrittenLine, gateway: &GatewayArguments) -> Option<Vec<String>> {
    let (target, field) = match things {
        Things::Limits | Things::Keys => ("/api/v1/limits", "name"),
        Things::Bans => ("/api/v1/bans", "id"),
        Things::Requests => ("/api/v1/requests", "id"),
        Things::Domains | Things::Descriptors => return None,
    };
    let answer = gateway.client().ok()?.ask(Method::GET, target, None, PATIENCE).ok()?;
    let document: Value = serde_json::from_slice(&answer.body).ok().filter(|_| answer.status.is_success())?;
    let mut entries = document.as_array()?.iter();
    if things == Things::Keys {
        let limit = entries.find(|entry| entry[field].as_str() == written.limit());
        let selectors = limit.and_then(|limit| limit["key"].as_array()).into_iter().flatten();
        return Some(selectors.filter_map(Value::as_str).map(|selector| format!("{selector}=")).collect());
    }
    Some(entries.filter_map(|entry| entry[field].as_str()).map(str::to_owned).collect())
}

/// What stands in the configuration that is named, or in the one here. Bans and requests stand in none.
fn configured(things: Things, written: &WrittenLine) -> Vec<String> {
    let file = written.value_of(&["-c", "--config"]).unwrap_or(DEFAULT_FILE);
    let policy = match things {
        Things::Bans | Things::Requests => return Vec::new(),
        Things::Limits | Things::Keys | Things::Domains | Things::Descriptors => config::load(Path::new(file)),
    };
    let Ok(policy) = policy.map(|settings| settings.policy) else { return Vec::new() };
    let limits = policy.limits.iter();
    match things {
        Things::Keys => {
            let named = limits.filter(|limit| Some(&*limit.name) == written.limit());
            named.flat_map(|limit| &limit.key.parts).map(|part| format!("{}=", part.selector)).collect()
        }
        Things::Domains => {
            policy.routes.all().iter().filter_map(|route| route.domain.as_deref()).map(str::to_owned).collect()
        }
        Things::Descriptors => {
            let mut entries: Vec<String> = limits
                .flat_map(|limit| &limit.key.parts)
                .filter_map(|part| {
                    part.selector.to_string().strip_prefix("descriptor.").map(|entry| format!("{entry}="))
                })
                .collect();
            entries.sort();
            entries.dedup();
            entries
        }
        _ => limits.map(|limit| limit.name.to_string()).collect(),
    }
}
