//! `command-line.md`: the help of every command.

use std::process::Command;

use super::is_up_to_date;
use crate::support::binary;

const INTRODUCTION: &str = "\
# Command line

This page is the output of `portcullis help` for every command.

Exit codes of all commands: 0 done, 1 the input was wrong, 2 usage, 3 the gateway could not be reached.
";

#[test]
fn the_page_has_the_help_of_every_command() {
    is_up_to_date("command-line.md", &format!("{INTRODUCTION}{}", described(&[])));
}

/// The help of a command and of those below it.
fn described(command: &[&str]) -> String {
    let help = help(command);
    let below: String = commands(&help).into_iter().map(|below| described(&[command, &[below]].concat())).collect();
    match command {
        [] => below,
        command => format!("\n## portcullis {}\n\n```text\n{}\n```\n{below}", command.join(" "), help.trim_end()),
    }
}

/// The names under `Commands:`.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

fn help(command: &[&str]) -> String {
    let mut program = Command::new(binary());
    program.args(command).arg("--help").env_remove("PORTCULLIS_ADMIN");
    let output = program.output().expect("the binary starts");
    assert!(output.status.success(), "{command:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
