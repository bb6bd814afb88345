//! `portcullis replay`: what a configuration would have done to the traffic in access logs.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use super::output;
use crate::cli::output::Progress;
use crate::cli::program::{ConfigFile, Exit, Format};
use crate::replay::{FieldNames, LogFiles};
use crate::{config, replay};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis replay -c new.yaml /var/log/nginx/access.log /var/log/nginx/access.log.1
  portcullis replay -c new.yaml --against /etc/portcullis/portcullis.yaml /var/log/portcullis/*.gz
  portcullis replay --fields time=ts,client=ip,method=verb,path=url,status=code access.json
  journalctl -u haproxy -o cat | portcullis replay --log-format haproxy -
  portcullis replay --format json access.log | jq '.limits[] | {name, count, worst_minute}'

Requests are decided in the order in which they began, over all files, at the times of the log, with counts in memory
that begin empty. The client is the address that the log names: trusted_proxies and forwarding headers are not looked
at, because a proxy that logs has found its client already. What a log does not hold, such as form fields, is said,
and the limits that need it are left out. Headers, outcomes and concurrency are replayed where the log holds headers,
statuses and durations. A request that was denied by portcullis has no answer of the application: where it passes now,
it keeps its slot like one that was not answered.
Lines may stand within what syslog (RFC 3164 and 5424), Docker (json-file) or Kubernetes (CRI) write around them.
HAProxy logs no time zone: its times are read as UTC.

Exit codes: 0 done, 1 a file could not be read or no line was understood.")]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    /// Replay under this older configuration too, and show who would be treated differently
    #[arg(long, value_name = "OLD.yaml")]
    against: Option<PathBuf>,
    #[command(flatten)]
    logs: Logs,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// The logs of a command.
#[derive(Debug, clap::Args)]
pub(super) struct Logs {
    /// The format of the logs; `auto`: each file says by its first lines what it is
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Auto)]
    log_format: LogFormat,
    /// The names of fields in JSON lines: any of time, client, request, method, path, query, status, host, duration (in
    /// seconds), `user_agent` and referer; a dot leads into an object. Other parts are looked for under nginx's names
    #[arg(long, value_name = "PART=FIELD,...", value_parser = FieldNames::parse)]
    fields: Option<FieldNames>,
    /// Access logs, as they are or compressed with gzip or zstd; `-` is standard input
    #[arg(required = true, value_name = "ACCESS.LOG")]
    files: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum LogFormat {
    Auto,
    Portcullis,
    /// The common and the combined format of nginx, Apache and others
    Combined,
    Caddy,
    Traefik,
    /// `option httplog`, `httpslog` and `httplog clf`
    Haproxy,
    /// JSON with fields of any name, as nginx writes it; see --fields
    Json,
    /// Envoy's default format
    Envoy,
    /// AWS's Application Load Balancer
    Alb,
    /// The extended format of the W3C, as IIS writes it
    Iis,
    NginxProxyManager,
}

impl Logs {
    /// Opens the logs. `command` is the one that has these arguments.
    pub(super) fn open(&self, command: clap::Command) -> anyhow::Result<LogFiles> {
        self.check(command)?;
        let format = match self.log_format {
            LogFormat::Auto => replay::LogFormat::Auto,
            LogFormat::Portcullis => replay::LogFormat::Portcullis,
            LogFormat::Combined => replay::LogFormat::Combined,
            LogFormat::Caddy => replay::LogFormat::Caddy,
            LogFormat::Traefik => replay::LogFormat::Traefik,
            LogFormat::Haproxy => replay::LogFormat::Haproxy,
            LogFormat::Json => replay::LogFormat::Json,
            LogFormat::Envoy => replay::LogFormat::Envoy,
            LogFormat::Alb => replay::LogFormat::Alb,
            LogFormat::Iis => replay::LogFormat::Iis,
            LogFormat::NginxProxyManager => replay::LogFormat::NginxProxyManager,
        };
        let fields = self.fields.clone().unwrap_or_default();
        Ok(LogFiles::open(&self.files, format, &fields)?)
    }

    /// Names of fields mean nothing to a format whose fields have their names already.
    fn check(&self, mut command: clap::Command) -> Result<(), clap::Error> {
        if self.fields.is_none() || matches!(self.log_format, LogFormat::Auto | LogFormat::Json) {
            return Ok(());
        }
        let named = self.log_format.to_possible_value();
        let format = named.as_ref().map_or_else(Default::default, PossibleValue::get_name);
        let wrong = format!(
            "`--fields` names the fields of JSON lines, and `--log-format {format}` reads none by such names: leave out \
             `--fields`, or write `--log-format json`"
        );
        Err(command.error(ErrorKind::ArgumentConflict, wrong))
    }
}

pub(super) fn replay(arguments: &Arguments) -> anyhow::Result<Exit> {
    let settings = match config::load(&arguments.config.file) {
        Ok(settings) => settings,
        Err(mistakes) => {
            output::print_mistakes(&mistakes);
            return Ok(Exit::Wrong);
        }
    };
    let against = match arguments.against.as_deref().map(config::load).transpose() {
        Ok(settings) => settings,
        Err(mistakes) => {
            output::print_mistakes(&mistakes);
            return Ok(Exit::Wrong);
        }
    };
    let logs = arguments.logs.open(Arguments::augment_args(clap::Command::new("portcullis replay")))?;
    let mut progress = Progress::new();
    let report = replay::replay(logs, settings, against, |position| progress.show(position));
    progress.clear();
    let report = report?;
    match arguments.format {
        Format::Human => output::print(report.to_string().trim_end()),
        Format::Json => output::print_json(&report),
    }?;
    Ok(Exit::Done)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis suggest /var/log/nginx/access.log* > portcullis.yaml
  portcullis check -c portcullis.yaml && portcullis replay -c portcullis.yaml /var/log/nginx/access.log*

The output is a whole configuration that passes `check`. Its upstream is a placeholder: replace it. Where the logins of
an application are known, its recipe comes first. Paths that differ in a number or another identifier become one route,
such as /users/{id}. The most frequent routes and those that look like a login, by their name or by how many requests
were answered with 401 or 403, get limits by client. Each rate is ten times what an ordinary client did in its busiest
minute or hour, whatever a tenth of the clients did; clients that look like attackers are left out. Comments give the
figures, and name the clients that would have been denied.

Exit codes: 0 done, 1 a file could not be read or no line was understood.")]
pub(super) struct SuggestArguments {
    #[command(flatten)]
    logs: Logs,
}

// `portcullis suggest`: limits that the traffic in access logs would have lived with.

pub(super) fn suggest(arguments: &SuggestArguments) -> anyhow::Result<Exit> {
    let logs = arguments.logs.open(SuggestArguments::augment_args(clap::Command::new("portcullis suggest")))?;
    let mut progress = Progress::new();
    let configuration = replay::suggest(logs, |position| progress.show(position));
    progress.clear();
    output::print_as_is(&configuration?)?;
    Ok(Exit::Done)
}
