//! `portcullis suggest`: limits that the traffic in access logs would have lived with.

use clap::Args;

use super::exit::Exit;
use super::output;
use super::progress::Progress;
use super::replay::Logs;
use crate::replay;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portcullis suggest /var/log/nginx/access.log* > portcullis.yaml
  portcullis check -c portcullis.yaml && portcullis replay -c portcullis.yaml /var/log/nginx/access.log*

The output is a whole configuration that passes `check`. Its upstream is a placeholder: replace it. Paths that differ
in a number or another identifier become one route, such as /users/{id}. The most frequent routes and those that look
like a login, by their name or by how many requests were answered with 401 or 403, get limits by client. Each rate has
headroom above what 99 of 100 clients did in their busiest minute and hour. Comments give the figures, and name the
clients that would have been denied: if there was an attack in the log, they are the attackers.

Exit codes: 0 done, 1 a file could not be read or no line was understood.")]
pub(super) struct Arguments {
    #[command(flatten)]
    logs: Logs,
}

pub(super) fn suggest(arguments: &Arguments) -> anyhow::Result<Exit> {
    let logs = arguments.logs.open(Arguments::augment_args(clap::Command::new("portcullis suggest")))?;
    let mut progress = Progress::new();
    let configuration = replay::suggest(logs, |position| progress.show(position));
    progress.clear();
    output::print_as_is(&configuration?)?;
    Ok(Exit::Done)
}
