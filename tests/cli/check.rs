//! `portcullis check`.

use std::os::unix::fs::PermissionsExt;

use crate::support::Folder;

const GOOD: &str = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
routes:
  - match: POST /login
    limits:
      - {key: client_ip, rate: 1/second; 20/minute}
";

const TWO_MISTAKES: &str = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
routes:
  - match: POST /login
    limit: []
  - match: /admin
    only: [office]
";

/// What people write who know other programs.
const WRONG: [&str; 3] = ["habit-nginx-conf", "habit-haproxy-bind", "habit-traefik-labels"];

#[test]
fn run_and_explain_say_of_a_wrong_file_what_check_says() {
    for file in WRONG {
        let text = std::fs::read_to_string(format!("tests/config/bad/{file}.yaml")).expect("a file");
        let folder = Folder::with(&text);
        let checked = folder.run(&["check"]);
        assert_eq!(checked.code, Some(1), "{file}: {checked:?}");
        let first = checked.stdout.split("\n\n").next().unwrap_or_default();
        assert!(first.contains(" = help: "), "{file}: {first}");
        for command in [&["run"][..], &["explain", "/"]] {
            let ended = folder.run(command);
            assert_eq!((ended.code, &*ended.stderr), (Some(1), &*checked.stdout), "{command:?} of {file}");
            assert_eq!(ended.stdout, "", "{command:?} of {file}");
        }
    }
}

#[test]
fn a_good_file_is_ok() {
    let ended = Folder::with(GOOD).run(&["check"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert_eq!(ended.stdout, "portcullis.yaml: ok (1 route, 1 limit, 1 upstream)\n");
}

#[test]
fn a_good_file_is_an_empty_list_for_programs() {
    let ended = Folder::with(GOOD).run(&["check", "--format", "json"]);
    assert_eq!((ended.code, ended.json()), (Some(0), serde_json::json!([])));
}

#[test]
fn every_mistake_is_told_at_once_with_its_place() {
    let ended = Folder::with(TWO_MISTAKES).run(&["check"]);
    assert_eq!(ended.code, Some(1));
    for expected in ["portcullis.yaml:5:5", "limits", "portcullis.yaml:7:12", "office"] {
        assert!(ended.stdout.contains(expected), "no `{expected}` in\n{}", ended.stdout);
    }
}

#[test]
fn a_list_of_anything_else_says_how_many_more_of_its_lines_are_wrong() {
    let config = format!("{GOOD}lists: {{abusers: {{file: abusers.txt}}}}\naccess: {{deny: [abusers]}}\n");
    for (wrong, more) in
        [(20, None), (21, Some("1 further line of this file, from here on, is no ")), (25, Some("5 further lines"))]
    {
        let folder = Folder::with(&config);
        folder.write("abusers.txt", &"192.0.2.1\nnobody\n".repeat(wrong));
        let ended = folder.run(&["check"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.contains(more.unwrap_or("20 mistakes")), "{ended:?}");
        assert_eq!(ended.stdout.contains("abusers.txt:42:1"), more.is_some(), "{ended:?}");
    }
}

#[test]
fn mistakes_are_a_list_for_programs() {
    let ended = Folder::with(TWO_MISTAKES).run(&["check", "--format", "json"]);
    assert_eq!(ended.code, Some(1));
    let mistakes = ended.json();
    assert_eq!(mistakes.as_array().map(Vec::len), Some(2), "{mistakes}");
    assert_eq!(mistakes[0]["file"], "portcullis.yaml");
    assert_eq!((&mistakes[0]["line"], &mistakes[0]["column"]), (&5.into(), &5.into()));
    assert!(mistakes[0]["message"].is_string() && mistakes[0].get("help").is_some(), "{mistakes}");
}

#[test]
fn a_file_that_is_not_there_is_a_mistake() {
    let ended = Folder::empty().run(&["check", "-c", "nowhere.yaml"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stdout.contains("nowhere.yaml"), "{ended:?}");
}

const DOUBTFUL: &str = "\
listen: 127.0.0.1:8080
upstream: http://127.0.0.1:8000
routes:
  - match: /*
  - match: POST /login
";

#[test]
fn a_warning_has_the_form_of_a_mistake_and_is_none_unless_asked() {
    let folder = Folder::with(DOUBTFUL);
    let ended = folder.run(&["check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for expected in
        ["warning: no request", " portcullis.yaml:5:12\n", "5 |   - match: POST /login\n", "= help: ", "ok (2 routes"]
    {
        assert!(ended.stdout.contains(expected), "no `{expected}` in\n{}", ended.stdout);
    }
    let denied = folder.run(&["check", "--deny-warnings"]);
    assert_eq!(denied.code, Some(1), "{denied:?}");
    assert!(denied.stdout.contains("\n1 warning\n") && !denied.stdout.contains("ok ("), "{denied:?}");
    let good = Folder::with(GOOD).run(&["check", "--deny-warnings"]);
    assert_eq!(good.code, Some(0), "{good:?}");
}

#[test]
fn programs_tell_warnings_from_errors() {
    let check =
        |config: &str, more: &[&str]| Folder::with(config).run(&[&["check", "--format", "json"], more].concat());
    let warned = check(DOUBTFUL, &[]);
    let warnings = warned.json();
    assert_eq!((warned.code, &warnings[0]["severity"]), (Some(0), &"warning".into()));
    assert_eq!((&warnings[0]["line"], &warnings[0]["column"]), (&5.into(), &12.into()));
    assert_eq!(check(DOUBTFUL, &["--deny-warnings"]).code, Some(1));
    assert_eq!(check(TWO_MISTAKES, &[]).json()[0]["severity"], "error");
}

#[test]
fn a_token_that_others_know_or_guess_is_warned_of_and_never_shown() {
    let config = "listen: 127.0.0.1:8080\nupstream: http://127.0.0.1:8000\nadmin: {address: 127.0.0.1:9090, token_file: token}\n";
    let folder = Folder::with(config);
    let warnings = |token: &str, mode: u32| {
        folder.write("token", token);
        let path = folder.path().join("token");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode is set");
        let ended = folder.run(&["check"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stdout.contains(token.trim()), "{ended:?}");
        ended.stdout
    };
    let good = "0b9c1f7d2e5a4c38\n";
    assert!(!warnings(good, 0o640).contains("warning"));
    let told = warnings(good, 0o644);
    assert!(told.contains("every user of this machine (mode 0644)") && told.contains("portcullis.yaml:3:"), "{told}");
    assert!(warnings(&good[1..], 0o600).contains("shorter than 16 characters"));
    assert!(warnings("change-me-before-use\n", 0o600).contains("the one of the examples"));
}

#[test]
fn a_key_that_others_read_is_warned_of() {
    let folder = Folder::with(
        "listen: {address: 127.0.0.1:8443, tls: {certificates: [{cert: site.pem, key: site.key}]}}\nupstream: http://127.0.0.1:8000\n",
    );
    folder.write("site.pem", include_str!("../config/tls/site.pem"));
    folder.write("site.key", include_str!("../config/tls/site.key"));
    let mode = |mode| {
        let path = folder.path().join("site.key");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode is set");
    };
    mode(0o604);
    assert!(folder.run(&["check"]).stdout.contains("the key file `site.key` can be read by every user"));
    mode(0o600);
    assert_eq!(folder.run(&["check", "--deny-warnings"]).code, Some(0));
}

/// With this in `audit` or `store`.
fn writing(section: &str) -> String {
    format!("listen: 127.0.0.1:0\nupstream: http://127.0.0.1:8000\n{section}\n")
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).expect("the folder");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_log_or_an_audit_trail_that_run_could_not_write_is_told_as_run_tells_it() {
    for (section, column, expected) in [
        ("audit: {file: nowhere/audit.jsonl}", 15, "nowhere/audit.jsonl: no such file"),
        ("audit: {file: page/audit.jsonl}", 15, "page/audit.jsonl: "),
        ("audit: {sqlite: nowhere/audit.db}", 17, "nowhere/audit.db: no such file"),
        ("audit: {sqlite: page}", 17, "page: file is not a database"),
        ("log: {file: nowhere/log.jsonl}", 13, "nowhere/log.jsonl: no such file"),
    ] {
        let folder = Folder::with(&writing(section));
        folder.write("page", "a page of text, and no database");
        let (check, run) = (folder.run(&["check"]), folder.run(&["run"]));
        assert_eq!((check.code, run.code), (Some(1), Some(1)), "{check:?} {run:?}");
        let what = if section.starts_with("log") { "the log" } else { "the audit trail" };
        let told = format!("cannot write {what} to {expected}");
        assert!(check.stdout.contains(&told), "no `{told}` in {}", check.stdout);
        assert!(check.stdout.contains(&format!("portcullis.yaml:3:{column}\n")), "{}", check.stdout);
        assert!(run.stderr.ends_with(&check.stdout), "{}\n{}", run.stderr, check.stdout);
        assert_eq!(names(&folder), ["page", "portcullis.yaml"], "nothing was created");
    }
}

#[test]
fn a_snapshot_that_cannot_be_written_is_warned_of() {
    let folder = Folder::with(&writing("store: {memory: {snapshot: nowhere/state}}"));
    let (check, denied) = (folder.run(&["check"]), folder.run(&["check", "--deny-warnings"]));
    assert_eq!((check.code, denied.code), (Some(0), Some(1)), "{check:?} {denied:?}");
    for expected in
        ["warning: cannot write the snapshot to nowhere/state: no such file", "portcullis.yaml:3:28\n", "ok ("]
    {
        assert!(check.stdout.contains(expected), "no `{expected}` in {}", check.stdout);
    }
}

#[test]
fn what_can_be_written_is_not_created_by_a_check() {
    let folder =
        Folder::with(&writing("audit: {file: audit.jsonl, sqlite: audit.db}\nstore: {memory: {snapshot: state}}"));
    let check = folder.run(&["check", "--deny-warnings"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    assert_eq!(names(&folder), ["portcullis.yaml"]);
}
