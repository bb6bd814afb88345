//! Help, versions, and command lines that mean nothing.

use crate::command::Folder;

#[test]
fn nonsense_is_a_usage_error() {
    for arguments in [
        &["nonsense"][..],
        &[],
        &["run", "--limit", "POST /login client_ip 5/minute"],
        &["run", "-c", "a.yaml", "--upstream", "http://127.0.0.1:1"],
        &["check", "--format", "xml"],
        &["explain"],
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
    for command in ["run", "demo", "check", "explain", "schema", "health"] {
        let ended = Folder::empty().run(&[command, "--help"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains(&format!("Usage: portcullis {command}")), "{}", ended.stdout);
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let ended = Folder::empty().run(&["--version"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), concat!("portcullis ", env!("CARGO_PKG_VERSION"), "\n")));
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
