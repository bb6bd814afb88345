//! The completions of shells, in the shells themselves.

use std::process::Command;

use crate::support::Folder;

/// The name of a limit may hold what a shell would expand.
const CONFIG: &str = "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nlimits:\n  \
     - {name: login-pace, key: client_ip, rate: 1/second}\n  - {name: '$(echo no) all', key: [], rate: 9/second}\n";

/// What a shell prints for a script, beside a configuration. No gateway runs there.
#[track_caller]
fn printed(shell: &str, arguments: &[&str], script: &str) -> Vec<String> {
    let folder = Folder::with(CONFIG);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_portcullis")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
    let ended = Command::new(shell)
        .args(arguments)
        .args(["-c", script])
        .env("PATH", path)
        .env("PORTCULLIS_ADMIN", "http://127.0.0.1:1")
        .current_dir(folder.path())
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}: tests/run installs it"));
    assert!(ended.status.success() && ended.stderr.is_empty(), "{shell}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8_lossy(&ended.stdout).lines().map(str::to_owned).collect()
}

/// Where the name of a limit stands.
const WANTS_LIMIT: [&str; 5] = ["bans add --limit", "bans remove --limit", "limits show", "limits reset", "top"];

#[test]
fn bash_completes_the_names_of_limits() {
    for line in WANTS_LIMIT {
        let (count, last) = (line.split(' ').count() + 1, line.split(' ').next_back().expect("a word"));
        let script = format!(
            "source <(portcullis completions bash); COMP_LINE='portcullis {line} '; COMP_WORDS=(portcullis {line} ''); \
             COMP_CWORD={count}; _portcullis portcullis '' {last}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        assert_eq!(printed("bash", &[], &script), ["login-pace", "\\$\\(echo\\ no\\)\\ all"], "{line}");
    }
}

#[test]
fn zsh_completes_the_names_of_limits() {
    let script = "compdef() {}; source <(portcullis completions zsh); BUFFER='portcullis top '; \
                  compadd() { print -rl -- $names }; _portcullis_limits; _portcullis_bans; \
                  portcullis completions zsh | grep -c ':_portcullis_limits'";
    assert_eq!(printed("zsh", &["-f"], script), ["login-pace", "$(echo no) all", "", "5"]);
}

#[test]
fn fish_completes_the_names_of_limits() {
    for line in WANTS_LIMIT {
        let script = format!("portcullis completions fish | source; complete -C 'portcullis {line} '");
        let printed: Vec<String> = printed("fish", &["--no-config"], &script)
            .iter()
            .map(|name| name.split('\t').next().unwrap_or_default().to_owned())
            .collect();
        assert!(printed.iter().any(|name| name == "login-pace"), "{line}: {printed:?}");
        assert!(printed.iter().any(|name| name == "$(echo no) all"), "{line}: {printed:?}");
        assert!(!printed.iter().any(|name| name.starts_with("portcullis.yaml")), "{line}: {printed:?}");
    }
}

#[test]
fn bash_completes_the_names_of_recipes() {
    let script = "source <(portcullis completions bash); COMP_WORDS=(portcullis recipe wo); COMP_CWORD=2; \
                  _portcullis portcullis wo recipe; printf '%s\\n' \"${COMPREPLY[@]}\"";
    assert_eq!(printed("bash", &[], script), ["wordpress"]);
}

#[test]
fn fish_completes_the_names_of_recipes() {
    let script = "portcullis completions fish | source; complete -C 'portcullis recipe '";
    let printed = printed("fish", &["--no-config"], script);
    assert!(printed.iter().any(|line| line.split('\t').next() == Some("keycloak")), "{printed:?}");
}
