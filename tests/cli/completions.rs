//! The completions of shells, in the shells themselves.

use std::process::Command;

use crate::support::{Folder, binary};

/// The name of a limit may hold what a shell would expand.
const CONFIG: &str = "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nlimits:\n  \
     - {name: login-pace, key: client_ip, rate: 1/second}\n  - {name: '$(echo no) all', key: [], rate: 9/second}\n";

/// What a shell prints for a script, beside a configuration. No gateway runs there.
#[track_caller]
fn printed(shell: &str, arguments: &[&str], script: &str) -> Vec<String> {
    let folder = Folder::with(CONFIG);
    let program = std::path::Path::new(binary()).parent().expect("a folder");
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
fn bash_completes_the_names_of_limits_behind_options_of_either_kind() {
    for (line, last, expected) in [
        ("top --watch", "--watch", &["login-pace", "\\$\\(echo\\ no\\)\\ all"][..]),
        ("top --minutes 5", "5", &["login-pace", "\\$\\(echo\\ no\\)\\ all"]),
        ("top --by", "--by", &["denied", "requests", "failures"]),
        ("bans add --limit login-pace --force", "--force", &["client_ip="]),
    ] {
        let count = line.split(' ').count() + 1;
        let script = format!(
            "source <(portcullis completions bash); COMP_LINE='portcullis {line} '; COMP_WORDS=(portcullis {line} ''); \
             COMP_CWORD={count}; _portcullis portcullis '' {last}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        assert_eq!(printed("bash", &[], &script), expected, "{line}");
    }
}

#[test]
fn zsh_completes_the_names_of_limits() {
    let script = "compdef() {}; source <(portcullis completions zsh); BUFFER='portcullis top '; \
                  compadd() { print -rl -- ${(P)argv[-1]} }; _portcullis_limits; \
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

/// A line, and what stands at its end: the selectors of the limit that it names, what Envoy asks about, or a file.
const WANTS_OTHERS: [(&str, &[&str]); 9] = [
    ("limits show login-pace", &["client_ip="]),
    ("limits reset login-failures", &["client_ip=", "param.username="]),
    ("limits reset login-failures client_ip=192.0.2.1", &["param.username="]),
    ("bans add --limit login-failures", &["client_ip=", "param.username="]),
    ("bans remove --limit login-pace", &["client_ip="]),
    ("limits show", &["login-pace", "login-failures"]),
    ("explain -c envoy.yaml --as rls", &["edge"]),
    ("explain -c envoy.yaml --as rls edge", &["path=", "remote_address="]),
    ("check -c", &["envoy.yaml", "portcullis.yaml"]),
];

const OTHERS: &str = "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nlimits:\n  \
     - {name: login-pace, key: client_ip, rate: 1/second}\nroutes:\n  - match: POST /login\n    limits:\n      \
     - {name: login-failures, key: [client_ip, param.username], rate: 9/second}\n";

const ENVOY: &str = "listen: {address: 127.0.0.1:0, serves: decisions}\nroutes:\n  - match: {domain: edge}\n    limits:\n      \
     - {key: [descriptor.remote_address, descriptor.path], rate: 9/second}\n";

/// What a shell prints for a script, beside two configurations.
#[track_caller]
fn printed_beside_others(shell: &str, arguments: &[&str], script: &str) -> Vec<String> {
    let setup = format!("printf '%s' '{OTHERS}' > portcullis.yaml; printf '%s' '{ENVOY}' > envoy.yaml; {script}");
    let mut printed = printed(shell, arguments, &setup);
    printed.sort();
    printed
}

#[test]
fn bash_completes_selectors_and_what_envoy_asks_about_and_files() {
    for (line, expected) in WANTS_OTHERS {
        let (count, last) = (line.split(' ').count() + 1, line.split(' ').next_back().expect("a word"));
        let script = format!(
            "source <(portcullis completions bash); COMP_LINE='portcullis {line} '; COMP_WORDS=(portcullis {line} ''); \
             COMP_CWORD={count}; _portcullis portcullis '' {last}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(printed_beside_others("bash", &[], &script), expected, "{line}");
    }
}

#[test]
fn zsh_completes_selectors_and_what_envoy_asks_about() {
    for (line, things) in [
        ("limits reset login-failures", "keys"),
        ("bans remove --limit login-failures", "bans"),
        ("explain -c envoy.yaml --as rls", "domains"),
        ("explain -c envoy.yaml --as rls edge", "descriptors"),
    ] {
        let script = format!(
            "compdef() {{}}; source <(portcullis completions zsh); BUFFER='portcullis {line} '; \
             compadd() {{ for name in ${{(P)argv[-1]}}; do print -r -- $name; [[ $name == *= && $1 != -S ]] && print no; done }}; \
             _portcullis_{things}; true"
        );
        let (_, expected) =
            WANTS_OTHERS.iter().find(|(known, _)| *known == line.replace("remove", "add")).expect("a line");
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(printed_beside_others("zsh", &["-f"], &script), expected, "{line}");
    }
    let script = "compdef() {}; for things in keys bans requests domains descriptors; do \
                  portcullis completions zsh | grep -c \":_portcullis_$things'\"; done; \
                  portcullis completions zsh | grep -c \":FILE:_files'\" | grep -v '^0$' > /dev/null";
    assert_eq!(printed("zsh", &["-f"], script), ["3", "1", "1", "1", "1"]);
}

#[test]
fn fish_completes_selectors_and_what_envoy_asks_about_and_files() {
    for (line, expected) in WANTS_OTHERS {
        let script = format!("portcullis completions fish | source; complete -C 'portcullis {line} '");
        let printed = printed_beside_others("fish", &["--no-config"], &script);
        let names: Vec<&str> = printed.iter().map(|name| name.split('\t').next().unwrap_or_default()).collect();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{line}");
    }
}

#[test]
fn fish_offers_files_only_to_commands_and_options_that_take_some() {
    for (line, expected) in [("check", &[][..]), ("bans list", &[]), ("health -c", &["envoy.yaml", "portcullis.yaml"])]
    {
        let script = format!("portcullis completions fish | source; complete -C 'portcullis {line} '");
        assert_eq!(printed_beside_others("fish", &["--no-config"], &script), expected, "{line}");
    }
}

#[test]
fn bash_completes_the_ids_of_requests_that_were_denied() {
    let gateway = crate::support::Gateway::start(
        "admin: {address: 127.0.0.1:0}\nupstream: http://127.0.0.1:1\nlimits:\n  - {key: client_ip, rate: 1/hour}\n",
    );
    gateway.get("/").send();
    let denied = gateway.get("/").send();
    let id = denied.header("x-request-id").expect("an id");
    let line = format!("portcullis why --admin http://{} ", gateway.admin());
    let script = format!(
        "source <(portcullis completions bash); COMP_LINE='{line}'; COMP_WORDS=(portcullis why ''); COMP_CWORD=2; \
         _portcullis portcullis '' why; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    assert_eq!(printed("bash", &[], &script), [id]);
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

#[test]
fn fish_completes_the_shells_and_bash_no_option_that_the_help_does_not_show() {
    let script = "portcullis completions fish | source; complete -C 'portcullis completions '";
    let shells = printed("fish", &["--no-config"], script);
    assert_eq!(shells, ["bash", "fish", "zsh"]);
    let script = "source <(portcullis completions bash); COMP_WORDS=(portcullis completions ''); COMP_CWORD=2; \
                  _portcullis portcullis '' completions; printf '%s\\n' \"${COMPREPLY[@]}\"";
    assert_eq!(printed("bash", &[], script), ["-h", "--help", "bash", "zsh", "fish"]);
}
