//! `portcullis check`.

use crate::command::Folder;

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
