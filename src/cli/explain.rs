//! `portcullis explain`: which client, lists, route, limits and keys a request would meet, and why.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, anyhow};
use bytes::Bytes;
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use http::uri::Authority;
use http::{HeaderValue, Method, Uri};
use serde::Serialize;

use super::output;
use crate::cli::program::{ConfigFile, Exit, Format};
use crate::config;
use crate::config::Settings;
use crate::fronts::forward_auth;
use crate::gateway::admit::{framing, strip};
use crate::gateway::body::may_have_body;
use crate::gateway::header_kind::SignificantHeaders;
use crate::gateway::tokens::KeySource;
use crate::rules::decision::explain;
use crate::rules::decision::explain::{Asker, ExplainedTokens, Explanation};
use crate::rules::key::{Descriptor, DescriptorEntry};
use crate::rules::request::{BodyFields, CanonicalHead};
use crate::wire::head;
use crate::wire::head::{FieldName, KnownName};
use crate::words::clock;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis explain -X POST -d 'username=alice&password=x' http://example.com/login
  portcullis explain --from 198.51.100.7 /admin/users
  portcullis explain --from 10.0.0.5 -H 'X-Forwarded-For: 203.0.113.9' http://example.com/
  portcullis explain --as forward-auth -X POST http://example.com/login
  portcullis explain --as rls edge remote_address=198.51.100.7 path=/login

--as forward-auth: the request that a proxy describes before it forwards it. --from is the client that the proxy names.
--as rls: a descriptor that Envoy's rate limit filter asks about, with its domain and entries instead of a URL; an entry
without a value, written `user` or `user=`, is there and empty, as it is for the gateway.")]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    /// The method [default: GET, with a body POST]
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    method: Option<Method>,
    /// A header field; may be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(FieldName, HeaderValue)>,
    /// The body; a form, unless a Content-Type says otherwise
    #[arg(short = 'd', long = "data", value_name = "BODY")]
    body: Option<String>,
    /// The address that connects
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    from: IpAddr,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Who asks: the client itself, or a proxy by forward auth or by the rate limit service
    #[arg(long = "as", value_enum, value_name = "ASKER", default_value_t = AskedAs::Client)]
    asked_as: AskedAs,
    /// The URL of the request, or its path; with `--as rls` the domain
    #[arg(value_name = "URL")]
    url: String,
    /// With `--as rls`: the entries of the descriptor
    #[arg(value_name = "KEY=VALUE")]
    entries: Vec<String>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum AskedAs {
    /// The client, whose request the gateway forwards
    Client,
    /// A proxy, by forward auth
    ForwardAuth,
    /// Envoy, by the rate limit service
    Rls,
}

pub(super) fn explain(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.check()?;
    let settings = match config::load(&arguments.config.file) {
        Ok(settings) => settings,
        Err(mistakes) => {
            output::print_mistakes(&mistakes);
            return Ok(Exit::Wrong);
        }
    };
    match arguments.asked_as {
        AskedAs::Rls => {
            let explanation = explain::explain_descriptor(&settings.policy, &arguments.url, &descriptor(arguments));
            print(&explanation, arguments.format)?;
        }
        AskedAs::Client | AskedAs::ForwardAuth => {
            print(&explain_request(&settings, arguments)?, arguments.format)?;
        }
    }
    Ok(Exit::Done)
}

fn print(explanation: &(impl fmt::Display + Serialize), format: Format) -> anyhow::Result<()> {
    match format {
        Format::Human => output::print(explanation.to_string().trim_end()),
        Format::Json => output::print_json(explanation),
    }
}

impl Arguments {
    /// What describes a request has no place beside a descriptor, and the other way round.
    fn check(&self) -> Result<(), clap::Error> {
        let has_request = self.method.is_some() || self.body.is_some() || !self.headers.is_empty();
        let wrong = match (self.asked_as, self.entries.first()) {
            (AskedAs::Rls, _) if has_request => {
                "with `--as rls` there is no request: write the entries of the descriptor, such as `user=alice`"
                    .to_owned()
            }
            (AskedAs::Client | AskedAs::ForwardAuth, Some(entry)) => {
                format!("`{entry}` is an entry of a descriptor: add `--as rls`, and the domain in the place of the URL")
            }
            _ => return Ok(()),
        };
        let mut command = Self::augment_args(clap::Command::new("portcullis explain"));
        Err(command.error(ErrorKind::ArgumentConflict, wrong))
    }
}

/// The descriptor of the command line.
fn descriptor(arguments: &Arguments) -> Descriptor {
    let entry = |text: &String| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        DescriptorEntry { name: name.to_owned(), value: value.to_owned() }
    };
    Descriptor { entries: arguments.entries.iter().map(entry).collect() }
}

/// Takes the request through the steps of the gateway, up to the store.
fn explain_request(settings: &Settings, arguments: &Arguments) -> anyhow::Result<Explanation> {
    let mut head = request(arguments)?;
    if arguments.asked_as == AskedAs::ForwardAuth {
        let target = written_target(&arguments.url, &head);
        head = forward_auth::asked(head, &target)
            .map_err(|wrong| anyhow!("the gateway answers 400 to this request: {wrong}"))?;
    }
    let local_address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80);
    framing::check(&mut head, local_address).map_err(|bad_request| {
        anyhow!("the gateway answers {} to this request: {bad_request}", bad_request.status())
    })?;
    let asker = if arguments.asked_as == AskedAs::ForwardAuth { Asker::ForwardAuth } else { Asker::Client };
    let identity = settings.clients.identify(arguments.from, &head.fields);
    let mut significant_headers = SignificantHeaders::new(&settings.policy, &settings.clients);
    if let Some(header) = settings.tokens.as_ref().and_then(|tokens| tokens.place.header()) {
        significant_headers.add(header);
    }
    strip(&mut head.fields, &significant_headers, settings.policy.challenges());
    let bound = settings.requests.inspect_body;
    let hides_body = asker == Asker::ForwardAuth && may_have_body(head.method.as_str(), |name| head.fields.has(name));
    let fields = match &arguments.body {
        None => BodyFields::read(&head.fields, &Bytes::new(), !hides_body, bound),
        Some(body) => {
            let seen = Bytes::copy_from_slice(&body.as_bytes()[..body.len().min(bound)]);
            BodyFields::read(&head.fields, &seen, seen.len() == body.len(), bound)
        }
    };
    let sent_path = head.target().0.to_owned();
    let head = CanonicalHead::read(&head, identity.client);
    let upstreams = &settings.upstreams;
    let tokens = explained_tokens(settings, head.fields);
    let mut explanation = explain::explain(&settings.policy, &head, &fields, &tokens, asker, |id| {
        upstreams.get(usize::from(id.0)).map_or("none".to_owned(), |upstream| upstream.name.to_string())
    });
    // The gateway waits only for a body that is there.
    let wants_body = explanation.reads_body;
    explanation.reads_body &= arguments.body.as_ref().is_some_and(|body| !body.is_empty());
    explanation.misses_body = wants_body && arguments.body.is_none() && hides_body;
    explanation.elsewhere = explain::elsewhere(&settings.policy, &explanation, &sent_path);
    Ok(explanation)
}

/// What the tokens of the request prove, where a rule may read it. Asks no issuer.
fn explained_tokens(settings: &Settings, fields: &head::Fields) -> ExplainedTokens {
    let Some(tokens) = settings.tokens.as_ref().filter(|_| settings.policy.reads_claims()) else {
        return ExplainedTokens::default();
    };
    let explain = |keys| ExplainedTokens::of(&tokens.place, &tokens.validity, keys, fields, clock::wall());
    match &tokens.keys {
        KeySource::File(keys) => explain(Ok(keys)),
        KeySource::Url(document) => explain(Err(&document.url.to_string())),
    }
}

fn request(arguments: &Arguments) -> anyhow::Result<head::RequestHead> {
    let (site, target) = split_url(&arguments.url);
    let site: Uri = site.parse().with_context(|| format!("`{}` is not a URL", arguments.url))?;
    let target = if target.starts_with(['/', '*']) { target } else { &format!("/{target}") };
    let method = match (&arguments.method, &arguments.body) {
        (Some(method), _) => method.clone(),
        (None, Some(_)) => Method::POST,
        (None, None) => Method::GET,
    };
    let mut head = head::RequestHead::to(method, target)?;
    let fields = &mut head.fields;
    for (name, value) in &arguments.headers {
        fields.append(name, value.as_bytes());
    }
    if !fields.has(KnownName::HOST) {
        fields.append(KnownName::HOST, site.authority().map_or("localhost", Authority::as_str).as_bytes());
    }
    if let Some(body) = &arguments.body {
        if !fields.has(KnownName::CONTENT_TYPE) {
            fields.append(KnownName::CONTENT_TYPE, FORM);
        }
        if !fields.has(KnownName::CONTENT_LENGTH) {
            fields.append(KnownName::CONTENT_LENGTH, body.len().to_string().as_bytes());
        }
    }
    Ok(head)
}

/// The scheme and the host of a URL, and what a client would send for the rest, which may have bytes that no URL has.
fn split_url(url: &str) -> (&str, &str) {
    if url.starts_with(['/', '*']) {
        return ("localhost", url);
    }
    let authority = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |length| authority + length);
    url.split_at(end)
}

/// The target as a client of a proxy may send it: with a fragment, which no parsed target has.
fn written_target(url: &str, head: &head::RequestHead) -> String {
    let (path, query) = head.target();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let fragment = url.find('#').map_or("", |at| &url[at..]);
    format!("{path}{query}{fragment}")
}

const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// `Name: value`
fn header(text: &str) -> anyhow::Result<(FieldName, HeaderValue)> {
    let (name, value) = text.split_once(':').context("write it as `Name: value`")?;
    Ok((name.trim().parse()?, HeaderValue::from_str(value.trim())?))
}
