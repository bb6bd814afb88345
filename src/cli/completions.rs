//! `portcullis completions`: the completions of a shell, made from the same definition as the help.

use clap::Command;
use clap::ValueEnum;
use clap_complete::aot;

use super::exit::Exit;
use super::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(portcullis completions bash)
  portcullis completions bash > /etc/bash_completion.d/portcullis
  portcullis completions zsh > /usr/local/share/zsh/site-functions/_portcullis
  portcullis completions fish > ~/.config/fish/completions/portcullis.fish")]
pub(super) struct Arguments {
    /// The shell to complete in
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn completions(mut program: Command, arguments: &Arguments) -> anyhow::Result<Exit> {
    let shell = match arguments.shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    aot::generate(shell, &mut program, name, &mut script);
    output::print_as_is(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
