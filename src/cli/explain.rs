//! `portcullis explain`: which client, lists, route, limits and keys a request would meet, and why.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;

use anyhow::Context;
use anyhow::anyhow;
use bytes::Bytes;
use http::HeaderValue;
use http::Method;
use http::Uri;

use super::arguments::ConfigFile;
use super::arguments::Format;
use super::exit::Exit;
use super::output;
use crate::config;
use crate::config::Settings;
use crate::decision::explain;
use crate::decision::explain::Explanation;
use crate::gateway::admit::framing;
use crate::gateway::admit::strip::strip;
use crate::gateway::forward::significant_headers::SignificantHeaders;
use crate::head;
use crate::head::FieldName;
use crate::head::KnownName;
use crate::request::BodyFields;
use crate::request::RequestHead;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis explain -X POST -d 'username=alice&password=x' http://example.com/login
  portcullis explain --from 198.51.100.7 /admin/users
  portcullis explain --from 10.0.0.5 -H 'X-Forwarded-For: 203.0.113.9' http://example.com/")]
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
    /// The URL of the request, or its path
    #[arg(value_name = "URL")]
    url: String,
}

pub(super) fn explain(arguments: &Arguments) -> anyhow::Result<Exit> {
    let settings = match config::load(&arguments.config.file) {
        Ok(settings) => settings,
        Err(mistakes) => {
            output::print_mistakes(&mistakes);
            return Ok(Exit::Wrong);
        }
    };
    let explanation = explain_request(&settings, arguments)?;
    match arguments.format {
        Format::Human => output::print(explanation.to_string().trim_end()),
        Format::Json => output::print_json(&explanation),
    }
    Ok(Exit::Done)
}

/// Takes the request through the steps of the gateway, up to the store.
fn explain_request(settings: &Settings, arguments: &Arguments) -> anyhow::Result<Explanation> {
    let mut head = request(arguments)?;
    let local_address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80);
    framing::check(&mut head, local_address).map_err(|bad_request| {
        anyhow!("the gateway answers {} to this request: {bad_request}", bad_request.status())
    })?;
    let identity = settings.clients.identify(arguments.from, &head.fields);
    let significant_headers = SignificantHeaders::new(&settings.policy, &settings.clients);
    strip(&mut head.fields, &significant_headers, settings.policy.challenges());
    let bound = settings.requests.inspect_body;
    let fields = match &arguments.body {
        None => BodyFields::none(),
        Some(body) => {
            let seen = Bytes::copy_from_slice(&body.as_bytes()[..body.len().min(bound)]);
            BodyFields::read(&head.fields, &seen, seen.len() == body.len(), bound)
        }
    };
    let head = RequestHead::read(&head, identity.client);
    let upstreams = &settings.upstreams;
    let mut explanation =
        explain::explain(&settings.policy, &head, &fields, |id| upstreams[usize::from(id.0)].name.to_string());
    // The gateway waits only for a body that is there.
    explanation.reads_body &= arguments.body.as_ref().is_some_and(|body| !body.is_empty());
    Ok(explanation)
}

fn request(arguments: &Arguments) -> anyhow::Result<head::RequestHead> {
    let url: Uri = arguments.url.parse().with_context(|| format!("`{}` is not a URL", arguments.url))?;
    let target = url.path_and_query().map_or("/", |target| target.as_str());
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
        let host = url.authority().map_or("localhost", |authority| authority.as_str());
        fields.append(KnownName::HOST, host.as_bytes());
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

const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// `Name: value`
fn header(text: &str) -> anyhow::Result<(FieldName, HeaderValue)> {
    let (name, value) = text.split_once(':').context("write it as `Name: value`")?;
    Ok((name.trim().parse()?, HeaderValue::from_str(value.trim())?))
}
