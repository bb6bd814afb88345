//! `portcullis run`: runs the gateway.

use std::io;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use super::output;
use crate::app::process::Process;
use crate::app::takeover::{CommandLine, TakeoverOptions};
use crate::app::{App, Load, Origin, ProcessContext, StartError, log_mistake};
use crate::cli::program::{DEFAULT_FILE, Exit};
use crate::config;
use crate::config::inline::Flags;
use crate::config::source::STANDARD_INPUT;
use crate::record::log::{LogFile, OperationalLog};
use crate::record::{LogFormat, Sinks};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis run -c /etc/portcullis/portcullis.yaml
  portcullis run --upstream http://127.0.0.1:8000 --limit 'POST /login client_ip 5/minute'
  portcullis run --upstream http://127.0.0.1:8000 --listen 0.0.0.0:80 --limit '/* client_ip 100/second'
  portcullis run --upstream http://127.0.0.1:8000 --admin 127.0.0.1:9090 --limit 'POST /login client_ip 5/minute'
  portcullis run -c /etc/portcullis/portcullis.yaml --takeover

SIGHUP reloads the configuration, as does a change of any file it names. SIGTERM and SIGINT wait for
`server.timeouts.lame_duck`, finish the requests under way and end the gateway; a second one ends it at once. SIGUSR2
starts this command line again with --takeover: a new version of the program takes over without one refused or reset
connection. Requests are logged to stdout, everything else to stderr; or both to `log.file`, which SIGUSR1 opens anew.")]
pub(super) struct Arguments {
    /// The configuration; `-` is standard input, which is read once: paths are then relative to the current folder, and
    /// nothing is reloaded
    #[arg(short = 'c', long = "config", value_name = "FILE", default_value = DEFAULT_FILE, conflicts_with_all = ["upstream", "listen", "admin", "limits"])]
    file: PathBuf,
    /// Run without a file, in front of this application
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// The address to accept requests on, without a file [default: 0.0.0.0:8080]
    #[arg(long, value_name = "ADDR", requires = "upstream")]
    listen: Option<String>,
    /// The address of the admin listener, without a file; it must be loopback. Left out: there is none
    #[arg(long, value_name = "ADDR", requires = "upstream")]
    admin: Option<String>,
    /// A limit, without a file: methods, if not all, then a path, a key and a rate; may be given several times
    #[arg(long = "limit", value_name = "LIMIT", requires = "upstream")]
    limits: Vec<String>,
    /// Take the listening sockets over from the running gateway of the same configuration, which then drains. If
    /// anything is wrong, that gateway goes on. If none is running, this one starts
    #[arg(long)]
    takeover: bool,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let Arguments { file, upstream, listen, admin, limits, takeover } = arguments;
    let takeover = TakeoverOptions { takes_over: takeover, successor_command: CommandLine::of_this_process() };
    let Some(upstream) = upstream else {
        if !file.exists() && file.as_os_str() == DEFAULT_FILE {
            output::print_error(&format!("there is no {DEFAULT_FILE} here\n{FIRST_STEPS}"));
            return Ok(Exit::Wrong);
        }
        let read = file.clone();
        let load = Arc::new(move || config::load(&read));
        if file.as_os_str() != STANDARD_INPUT {
            return serve(load, &Origin::File(file), &takeover, |_| {});
        }
        // A successor would find the stream at its end.
        let successor_command = takeover.successor_command.map(CommandLine::unrepeatable);
        let takeover = TakeoverOptions { successor_command, ..takeover };
        return serve(load, &Origin::StandardInput, &takeover, |_| {});
    };
    let flags = Flags { upstream, listen, admin, limits };
    serve(Arc::new(move || config::inline(&flags)), &Origin::Flags, &takeover, |_| {})
}

const FIRST_STEPS: &str = "
  portcullis demo                                    runs a sample login with a limit, on this machine
  portcullis run --upstream http://127.0.0.1:8000    runs without a file, in front of that application
  portcullis run -c FILE                             runs from another file";

/// Reads the configuration and serves until a signal ends it.
pub(super) fn serve(
    load: Arc<Load>,
    origin: &Origin,
    takeover: &TakeoverOptions,
    on_started: impl FnOnce(&App),
) -> anyhow::Result<Exit> {
    let Some((process, read)) = Process::begin()?.read(&load) else { return Ok(Exit::Done) };
    let settings = match read {
        Ok(settings) => settings,
        Err(mistakes) => {
            output::print_mistakes(&mistakes);
            return Ok(Exit::Wrong);
        }
    };
    let log_file = Arc::new(LogFile::default());
    match log_file.open(settings.log.file.as_deref()) {
        Ok(opened) => log_file.set(opened),
        Err(error) => {
            output::print_mistakes(&[log_mistake(&settings.outputs, &error)]);
            return Ok(Exit::Wrong);
        }
    }
    if let Some(file) = &settings.log.file {
        output::print_note(&format!("the log goes to {}", file.display()));
    }
    let sinks =
        Sinks::new(io::stdout(), &log_file, format_for(&io::stdout())).context("cannot start the request log")?;
    let log = OperationalLog::start(&settings.log, &log_file, format_for(&io::stderr()));
    let context = ProcessContext { sinks, log: Some(Arc::new(log)), load };
    match process.serve(settings, context, origin, takeover, on_started) {
        Ok(()) => Ok(Exit::Done),
        Err(StartError::Mistakes(mistakes)) => {
            output::print_mistakes(&mistakes);
            Ok(Exit::Wrong)
        }
        Err(error) => Err(error.into()),
    }
}

/// `human` on a terminal, `json` everywhere else.
fn format_for(stream: &impl IsTerminal) -> LogFormat {
    if stream.is_terminal() { LogFormat::Human } else { LogFormat::Json }
}
