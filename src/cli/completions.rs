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
    output::print_as_is(&with_names(shell, &String::from_utf8_lossy(&script), &program))?;
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

pub(super) const NAMED_THINGS: [NamedThing; 12] = [
    NamedThing { command: &["limits", "show"], place: Place::First, things: "limits" },
    NamedThing { command: &["limits", "show"], place: Place::Further, things: "keys" },
    NamedThing { command: &["limits", "reset"], place: Place::First, things: "limits" },
    NamedThing { command: &["limits", "reset"], place: Place::Further, things: "keys" },
    NamedThing { command: &["top"], place: Place::First, things: "limits" },
    NamedThing { command: &["bans", "add"], place: Place::Option("limit"), things: "limits" },
    NamedThing { command: &["bans", "add"], place: Place::All, things: "keys" },
    NamedThing { command: &["bans", "remove"], place: Place::Option("limit"), things: "limits" },
    NamedThing { command: &["bans", "remove"], place: Place::All, things: "bans" },
    NamedThing { command: &["why"], place: Place::First, things: "requests" },
    NamedThing { command: &["explain"], place: Place::First, things: "domains" },
    NamedThing { command: &["explain"], place: Place::Further, things: "descriptors" },
];

/// Names are not words to expand: they are read line by line. Behind a selector, which ends in `=`, comes its value and no space.
const BASH: &str = "\
_portcullis_names() {
    local name
    COMPREPLY=()
    while IFS= read -r name; do
        [[ $name == \"$2\"* ]] && COMPREPLY+=(\"$(printf '%q' \"$name\")\")
    done < <(portcullis completions --names \"$1\" --line \"$COMP_LINE\" 2> /dev/null)
    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2> /dev/null || true
}

";

const ZSH: &str = "
_portcullis_names() {
    local -a names keys
    names=(${(f)\"$(portcullis completions --names \"$1\" --line \"$BUFFER\" 2> /dev/null)\"})
    keys=(${(M)names:#*=})
    names=(${names:#*=})
    compadd -a names
    compadd -S '' -a keys
}

_portcullis_limits() { _portcullis_names limits }

_portcullis_bans() { _portcullis_names bans }

_portcullis_requests() { _portcullis_names requests }

_portcullis_domains() { _portcullis_names domains }

_portcullis_keys() { _portcullis_names keys }

_portcullis_descriptors() { _portcullis_names descriptors }
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
    pub(super) place: Place,
    /// As `--names` has it.
    things: &'static str,
}

impl NamedThing {
    /// Whether it stands behind no option.
    fn is_argument(&self) -> bool {
        !matches!(self.place, Place::Option(_))
    }
}

/// Where an argument stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// Behind an option of this name.
    Option(&'static str),
    /// The first argument that is no option.
    First,
    /// Those behind the first.
    Further,
    /// Each that is no option.
    All,
}

/// The script, which asks for names where these are wanted.
fn with_names(shell: Shell, script: &str, program: &Command) -> String {
    match shell {
        Shell::Bash => in_bash(script),
        Shell::Zsh => in_zsh(script),
        Shell::Fish => in_fish(script, program),
    }
}

fn in_bash(script: &str) -> String {
    let (mut written, mut section) = (BASH.to_owned(), "");
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        section = line.trim().strip_suffix(')').filter(|name| name.starts_with("portcullis__")).unwrap_or(section);
        let here = |thing: &&NamedThing| section == format!("portcullis__subcmd__{}", thing.command.join("__subcmd__"));
        let named = || NAMED_THINGS.iter().filter(here);
        // The generated script offers options too that the help does not show, and options alone as the first argument.
        let mut line = line.replace(" --names --line", "");
        if named().any(NamedThing::is_argument)
            && let Some((condition, _)) = line.split_once(" || ${COMP_CWORD} -eq ")
        {
            line = format!("{condition} ]] ; then");
        }
        written.extend([line.as_str(), "\n"]);
        for NamedThing { place, things, .. } in named() {
            match place {
                // What is not the value of an option. The program tells from the line which arguments are there already.
                Place::First | Place::Further | Place::All if line.trim() == "*)" => {
                    let _ = write!(
                        written,
                        "                    _portcullis_names {things} \"${{cur}}\"\n                    \
                         [[ ${{#COMPREPLY[@]}} -eq 0 ]] || return 0\n"
                    );
                }
                Place::Option(option) if line.trim() == format!("--{option})") => {
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
        let begins = |starts: &[&str]| starts.iter().any(|start| line.trim_start().starts_with(start));
        let thing = NAMED_THINGS.iter().filter(here).find(|thing| match thing.place {
            Place::Option(option) => begins(&[&format!("'--{option}=")]),
            Place::First => begins(&["':name --", "'::limit --", "':id --", "':url --"]),
            Place::Further => begins(&["'*::values --", "'*::entries --"]),
            Place::All => begins(&["'*::what --"]),
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

fn in_fish(script: &str, program: &Command) -> String {
    let mut written = FISH.to_owned();
    for line in script.lines() {
        let named = NAMED_THINGS.iter().find(|thing| {
            let option = match thing.place {
                Place::Option(option) => Some(format!(" -l {option} ")),
                Place::First | Place::Further | Place::All => None,
            };
            line.contains(&format!("\"{}\"", fish_condition(thing.command)))
                && option.is_some_and(|option| line.contains(&option))
        });
        written.push_str(line);
        if let Some(NamedThing { things, .. }) = named {
            let _ = write!(written, " -f -a '(__portcullis_names {things})'");
        }
        written.push('\n');
    }
    for NamedThing { command, things, .. } in NAMED_THINGS.iter().filter(|thing| thing.is_argument()) {
        let condition = fish_condition(command);
        let _ = writeln!(written, "complete -c portcullis -n \"{condition}\" -f -a '(__portcullis_names {things})'");
    }
    // Where the generated script says nothing, fish offers files.
    for command in paths_without_arguments(program) {
        let _ = writeln!(written, "complete -c portcullis -n \"{}\" -f", fish_condition(&command));
    }
    // The generated script offers the values of options alone.
    let recipes = RECIPES.iter().map(|recipe| recipe.name.to_owned()).collect();
    let shells =
        Shell::value_variants().iter().filter_map(|shell| Some(shell.to_possible_value()?.get_name().to_owned()));
    for (command, values) in [("recipe", recipes), ("completions", shells.collect::<Vec<_>>())] {
        let (condition, values) = (fish_condition(&[command]), values.join(" "));
        let _ = writeln!(written, "complete -c portcullis -n \"{condition}\" -f -a '{values}'");
    }
    written
}

/// The commands whose only arguments are options.
fn paths_without_arguments(program: &Command) -> Vec<Vec<&str>> {
    let mut paths = Vec::new();
    for command in program.get_subcommands() {
        let inner: Vec<&Command> = command.get_subcommands().collect();
        let all = if inner.is_empty() {
            vec![(command, vec![])]
        } else {
            inner.into_iter().map(|it| (it, vec![command.get_name()])).collect()
        };
        for (command, mut path) in all {
            path.push(command.get_name());
            if command.get_positionals().next().is_none() {
                paths.push(path);
            }
        }
    }
    paths
}

fn fish_condition(command: &[&str]) -> String {
    match command {
        [command, subcommand] => {
            format!("__fish_portcullis_using_subcommand {command}; and __fish_seen_subcommand_from {subcommand}")
        }
        _ => format!("__fish_portcullis_using_subcommand {}", command.join(" ")),
    }
}
