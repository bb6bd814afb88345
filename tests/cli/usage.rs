//! Help, versions, and invalid command lines.

use crate::support::Folder;

#[test]
fn nonsense_is_a_usage_error() {
    for arguments in [
        &["nonsense"][..],
        &[],
        &["run", "--limit", "POST /login client_ip 5/minute"],
        &["run", "-c", "a.yaml", "--upstream", "http://127.0.0.1:1"],
        &["check", "--format", "xml"],
        &["explain"],
        &["replay"],
        &["suggest"],
        &["demo", "--listen", "nowhere"],
    ] {
        let ended = Folder::empty().run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains("--help") || ended.stderr.contains("Usage:"), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{arguments:?}");
    }
}

#[test]
fn every_command_explains_itself() {
    for command in ["run", "demo", "check", "explain", "replay", "suggest", "schema", "health", "completions", "man"] {
        let ended = Folder::empty().run(&[command, "--help"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains(&format!("Usage: portcullis {command}")), "{}", ended.stdout);
    }
}

#[test]
fn the_version_is_that_of_the_package_and_names_the_commit() {
    let ended = Folder::empty().run(&["--version"]);
    let (package, from) = ended.stdout.trim_end().split_once(" (").expect("what it is built from");
    assert_eq!((ended.code, package), (Some(0), concat!("portcullis ", env!("CARGO_PKG_VERSION"))));
    let commit = from.strip_prefix("commit ").map(|commit| commit.trim_end_matches(')'));
    assert!(
        commit.is_some_and(|commit| commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()))
            || from == "built without its history, commit unknown)"
            || from == "a debug build, commit unknown)",
        "{from}"
    );
}

#[test]
fn help_has_help_and_knows_every_command() {
    for arguments in [&["help"][..], &["help", "--help"], &["help", "run"], &["help", "bans", "add"], &["help", "help"]]
    {
        let ended = Folder::empty().run(arguments);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}: {ended:?}");
        assert!(ended.stdout.contains("Usage: portcullis"), "{arguments:?}: {ended:?}");
    }
    assert_eq!(Folder::empty().run(&["help", "nonsense"]).code, Some(2));
}

#[test]
fn defaults_stand_in_the_help() {
    for (command, default) in [
        ("run", "[default: portcullis.yaml]"),
        ("run", "[default: 0.0.0.0:8080]"),
        ("check", "[default: portcullis.yaml]"),
        ("explain", "[default: portcullis.yaml]"),
        ("demo", "[default: 127.0.0.1:8080]"),
        ("demo", "[default: 127.0.0.1:9090, or a free port where that is taken]"),
        ("health", "[default: http://127.0.0.1:9090]"),
        ("events", "[default: http://127.0.0.1:9090]"),
    ] {
        let ended = Folder::empty().run(&[command, "--help"]);
        let help = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(default), "{command}: {default} in {}", ended.stdout);
    }
}

#[test]
fn the_schema_is_json_for_editors() {
    let ended = Folder::empty().run(&["schema"]);
    let schema = ended.json();
    assert_eq!(ended.code, Some(0));
    let root = schema["$ref"].as_str().and_then(|path| schema.pointer(path.strip_prefix('#')?)).expect("a root");
    for section in ["listen", "upstream", "routes", "limits", "lists", "store"] {
        assert!(root["properties"].get(section).is_some(), "no `{section}` in the schema");
    }
}
