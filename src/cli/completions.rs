//! `portcullis completions`.

use std::fmt::Write;

use clap::{Command, ValueEnum};
use clap_complete::aot;

use crate::cli::output;
use crate::cli::program::Exit;
use crate::cli::remote::gateway::{Things, print_names};
use crate::words::recipes::RECIPES;

// `portcullis completions`: the completions of a shell, made from the same definition as the help.

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(portcullis completions bash)
  portcullis completions bash > /etc/bash_completion.d/portcullis
  portcullis completions zsh > /usr/local/share/zsh/site-functions/_portcullis
  portcullis completions fish > ~/.config/fish/completions/portcullis.fish")]
pub(in crate::cli) struct Arguments {
    /// The shell to complete in
    #[arg(value_enum, required_unless_present = "names")]
    shell: Option<Shell>,
    /// Print the names of things instead, as the scripts ask
    #[arg(long, value_enum, hide = true)]
    names: Option<Things>,
    /// The command line whose names are asked for
    #[arg(long, hide = true, default_value = "", allow_hyphen_values = true)]
    line: String,
}

pub(in crate::cli) fn completions(mut program: Command, arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(things) = arguments.names {
        return print_names(things, &arguments.line);
    }
    let Some(shell) = arguments.shell else { return Ok(Exit::Wrong) };
    let generator = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    aot::generate(generator, &mut program, name, &mut script);
    output::print_as_is(&with_names(shell, &String::from_utf8_lossy(&script)))?;
    Ok(Exit::Done)
}

// The shells that are completed in.

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
}

// Completes the names of things, which only a running gateway or its configuration knows. The scripts that are made from
// the command line offer files there.

pub(super) const NAMED_THINGS: [NamedThing; 6] = [
    NamedThing { command: &["limits", "show"], option: None, things: "limits" },
    NamedThing { command: &["limits", "reset"], option: None, things: "limits" },
    NamedThing { command: &["top"], option: None, things: "limits" },
    NamedThing { command: &["bans", "add"], option: Some("limit"), things: "limits" },
    NamedThing { command: &["bans", "remove"], option: Some("limit"), things: "limits" },
    NamedThing { command: &["bans", "remove"], option: None, things: "bans" },
];

/// Names are not words to expand: they are read line by line.
const BASH: &str = "\
_portcullis_names() {
    local name
    COMPREPLY=()
    while IFS= read -r name; do
        [[ $name == \"$2\"* ]] && COMPREPLY+=(\"$(printf '%q' \"$name\")\")
    done < <(portcullis completions --names \"$1\" --line \"$COMP_LINE\" 2> /dev/null)
}

";

const ZSH: &str = "
_portcullis_names() {
    local -a names
    names=(${(f)\"$(portcullis completions --names \"$1\" --line \"$BUFFER\" 2> /dev/null)\"})
    compadd -a names
}

_portcullis_limits() { _portcullis_names limits }

_portcullis_bans() { _portcullis_names bans }
";

const FISH: &str = "\
function __portcullis_names
    portcullis completions --names $argv[1] --line (commandline -cp) 2> /dev/null
end

";

/// An argument that takes a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedThing {
    pub(super) command: &'static [&'static str],
    /// `None`: the first argument that is no option.
    pub(super) option: Option<&'static str>,
    /// As `--names` has it.
    things: &'static str,
}

/// The script, which asks for names where these are wanted.
pub(super) fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => in_bash(script),
        Shell::Zsh => in_zsh(script),
        Shell::Fish => in_fish(script),
    }
}

fn in_bash(script: &str) -> String {
    let (mut written, mut section) = (BASH.to_owned(), "");
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        section = line.trim().strip_suffix(')').filter(|name| name.starts_with("portcullis__")).unwrap_or(section);
        let here = |thing: &&NamedThing| section == format!("portcullis__subcmd__{}", thing.command.join("__subcmd__"));
        written.extend([line, "\n"]);
        for NamedThing { command, option, things } in NAMED_THINGS.iter().filter(here) {
            match option {
                None if line.trim_start().starts_with("opts=") => {
                    let position = command.len() + 1;
                    let _ = write!(
                        written,
                        "            if [[ ${{cur}} != -* && ${{COMP_CWORD}} -eq {position} ]] ; then\n                \
                         _portcullis_names {things} \"${{cur}}\"\n                return 0\n            fi\n"
                    );
                }
                Some(option) if line.trim() == format!("--{option})") => {
                    lines.next();
                    let _ = writeln!(written, "                    _portcullis_names {things} \"${{cur}}\"");
                }
                _ => {}
            }
        }
    }
    written
}

fn in_zsh(script: &str) -> String {
    let mut written = String::new();
    // The command whose subcommands are told apart, and the one whose arguments are described.
    let (mut outer, mut path): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for line in script.lines() {
        if let Some(context) = line.split_once(":portcullis").and_then(|(_, after)| after.split_once("-command-")) {
            outer = context.0.split('-').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        } else if let Some(name) = line.trim().strip_prefix('(').and_then(|name| name.strip_suffix(')')) {
            path = outer.iter().cloned().chain([name.to_owned()]).collect();
        } else if line.trim() == "esac" {
            outer.pop();
        }
        let here = |thing: &&NamedThing| thing.command.iter().eq(path.iter());
        let thing = NAMED_THINGS.iter().filter(here).find(|thing| match thing.option {
            Some(option) => line.trim_start().starts_with(&format!("'--{option}=")),
            None => is_zsh_position(line),
        });
        let line = thing
            .and_then(|thing| {
                let before = line.strip_suffix(":_default' \\")?;
                Some(format!("{before}:_portcullis_{}' \\", thing.things))
            })
            .unwrap_or_else(|| line.to_owned());
        written.extend([&line, "\n"]);
        if line == "autoload -U is-at-least" {
            written.push_str(ZSH);
        }
    }
    written
}

/// Whether a line describes the first argument that is no option: of all that a command takes only that has a name.
fn is_zsh_position(line: &str) -> bool {
    ["':name --", "'::limit --", "'*::what --"].iter().any(|start| line.trim_start().starts_with(start))
}

fn in_fish(script: &str) -> String {
    let mut written = FISH.to_owned();
    for line in script.lines() {
        let named = NAMED_THINGS.iter().find(|thing| {
            let option = thing.option.map(|option| format!(" -l {option} "));
            line.contains(&format!("\"{}\"", fish_condition(thing.command)))
                && option.is_some_and(|option| line.contains(&option))
        });
        written.push_str(line);
        if let Some(NamedThing { things, .. }) = named {
            let _ = write!(written, " -f -a '(__portcullis_names {things})'");
        }
        written.push('\n');
    }
    for NamedThing { command, things, .. } in NAMED_THINGS.iter().filter(|thing| thing.option.is_none()) {
        let condition = fish_condition(command);
        let _ = writeln!(written, "complete -c portcullis -n \"{condition}\" -f -a '(__portcullis_names {things})'");
    }
    // The generated script offers the values of options alone.
    let recipes: Vec<_> = RECIPES.iter().map(|recipe| recipe.name).collect();
    let (condition, recipes) = (fish_condition(&["recipe"]), recipes.join(" "));
    let _ = writeln!(written, "complete -c portcullis -n \"{condition}\" -f -a '{recipes}'");
    written
}

fn fish_condition(command: &[&str]) -> String {
    match command {
        [command, subcommand] => {
            format!("__fish_portcullis_using_subcommand {command}; and __fish_seen_subcommand_from {subcommand}")
        }
        _ => format!("__fish_portcullis_using_subcommand {}", command.join(" ")),
    }
}
