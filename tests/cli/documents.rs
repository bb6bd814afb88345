//! Shell completions and manual pages, generated from the definition of the command line.

use std::fs;
use std::process::Command;

use crate::support::Folder;

/// Every command that `--help` lists.
fn commands() -> Vec<String> {
    let help = Folder::empty().run(&["--help"]).stdout;
    let listed = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("commands");
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let folder = Folder::empty();
    let script = folder.run(&["completions", "bash"]);
    assert_eq!((script.code, script.stderr.as_str()), (Some(0), ""), "{script:?}");
    folder.write("portcullis.bash", &script.stdout);
    let complete = |line: &[&str]| {
        let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
        let ask = format!(
            "source portcullis.bash; COMP_WORDS=({}); COMP_CWORD={}; \
             _portcullis portcullis \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            line.len() - 1
        );
        let mut bash = Command::new("bash");
        let said = bash.args(["--norc", "-c", &ask]).current_dir(folder.path()).output().expect("bash is installed");
        assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
        String::from_utf8(said.stdout).expect("text").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let offered = complete(&["portcullis", ""]);
    for command in commands() {
        assert!(offered.contains(&command), "{command} in {offered:?}");
    }
    assert_eq!(complete(&["portcullis", "exp"]), ["explain"]);
    assert_eq!(complete(&["portcullis", "run", "--tak"]), ["--takeover"]);
    assert_eq!(complete(&["portcullis", "check", "--format", "j"]), ["json"]);
    assert!(complete(&["portcullis", "bans", ""]).contains(&"export".to_owned()));
}

#[test]
fn zsh_and_fish_understand_their_completions() {
    let folder = Folder::empty();
    for (shell, check) in [("zsh", "--no-exec"), ("fish", "--no-execute")] {
        let script = folder.run(&["completions", shell]);
        assert_eq!((script.code, script.stderr.as_str()), (Some(0), ""), "{script:?}");
        for command in commands() {
            assert!(script.stdout.contains(&command), "{shell}: {command}");
        }
        folder.write(shell, &script.stdout);
        let said = Command::new(shell).args([check, shell]).current_dir(folder.path()).output();
        let said = said.unwrap_or_else(|error| panic!("{shell}: {error}; tests/run installs it"));
        assert!(said.status.success() && said.stderr.is_empty(), "{shell}: {said:?}");
    }
    assert_eq!(folder.run(&["completions", "cmd"]).code, Some(2));
}

#[test]
fn every_command_has_a_manual_page_that_groff_understands() {
    let folder = Folder::empty();
    let written = folder.run_in(&["man", "share/man1"], &[("PORTCULLIS_ADMIN", "http://10.11.12.13:9")]);
    assert_eq!((written.code, written.stdout.as_str(), written.stderr.as_str()), (Some(0), "", ""), "{written:?}");
    let pages = folder.path().join("share/man1");
    for command in commands() {
        assert!(pages.join(format!("portcullis-{command}.1")).is_file(), "{command}");
    }
    assert!(pages.join("portcullis-bans-add.1").is_file());
    for page in fs::read_dir(&pages).expect("the folder") {
        let page = page.expect("an entry").path();
        let text = fs::read_to_string(&page).expect("text");
        assert!(!text.contains("10.11.12.13"), "{}: what this machine says is no part of it", page.display());
        let mut groff = Command::new("groff");
        let said = groff.args(["-man", "-Tutf8", "-ww", "-z"]).arg(&page).output();
        let said = said.expect("groff is installed: tests/run installs it");
        assert!(said.status.success() && said.stderr.is_empty(), "{}: {said:?}", page.display());
    }
    let page = fs::read_to_string(pages.join("portcullis.1")).expect("the page of the program");
    assert!(page.contains("Exit codes: 0 done"), "{page}");
}

#[test]
fn manual_pages_that_cannot_be_written_are_an_error() {
    let folder = Folder::empty();
    folder.write("file", "");
    let ended = folder.run(&["man", "file/man1"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot write manual pages to file/man1"), "{ended:?}");
}
