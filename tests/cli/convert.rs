//! `portcullis convert`.

use std::fs;

use crate::support::Folder;

const EDGE: &str = "\
domain: edge
descriptors:
  - key: remote_address
    rate_limit: {unit: second, requests_per_unit: 10}
  - key: remote_address
    value: 198.51.100.7
    rate_limit: {unit: second, requests_per_unit: 0}
";

#[test]
fn what_is_printed_passes_check_and_names_each_domain_and_limit() {
    let folder = Folder::with(EDGE);
    fs::write(folder.path().join("second.yaml"), "domain: shop\ndescriptors: [{key: user}]\n").expect("a file");
    let ended = folder.run(&["convert", "ratelimit", "portcullis.yaml", "second.yaml"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    for expected in ["{domain: edge}", "{domain: shop}", "10/second", "edge.remote_address"] {
        assert!(ended.stdout.contains(expected), "no `{expected}` in\n{}", ended.stdout);
    }
    fs::write(folder.path().join("portcullis.yaml"), &ended.stdout).expect("a file");
    let checked = folder.run(&["check", "--deny-warnings"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn what_is_different_is_said_and_stands_in_the_file() {
    let text = EDGE
        .replace("  - key: remote_address\n    rate", "  - key: remote_address\n    detailed_metric: true\n    rate");
    let ended = Folder::with(&text).run(&["convert", "ratelimit", "portcullis.yaml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("warning: `detailed_metric`") && ended.stderr.contains("portcullis.yaml:4:"),
        "{ended:?}"
    );
    assert!(ended.stdout.contains("# - portcullis.yaml:4: `detailed_metric`"), "{}", ended.stdout);
}

#[test]
fn every_mistake_is_said_at_once_with_its_place() {
    let bad = "\
domain: edge
descriptors:
  - key: remote_address
    rate_limit: {unit: fortnight, requests_per_unit: 10}
  - value: 198.51.100.7
    ratelimit: {unit: second, requests_per_unit: 1}
  - {key: user, rate_limit: {unit: second, requests_per_unit: many}}
  - {key: user, rate_limit: {unit: second, unlimited: true}}
";
    let ended = Folder::with(bad).run(&["convert", "ratelimit", "portcullis.yaml"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    for (place, expected) in [
        ("4:24", "no valid `unit`"),
        ("5:5", "a descriptor without a `key`"),
        ("6:5", "unknown key `ratelimit`"),
        ("7:63", "`many` is no number of requests"),
        ("8:36", "`unlimited` has no unit"),
        ("8:5", "this entry is here twice"),
    ] {
        assert!(ended.stderr.contains(&format!("portcullis.yaml:{place}")), "no {place} in\n{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "no `{expected}` in\n{}", ended.stderr);
    }
}

#[test]
fn a_file_that_is_not_there_or_no_tree_ends_with_one() {
    let folder = Folder::with("- 1\n");
    for file in ["portcullis.yaml", "nowhere.yaml"] {
        let ended = folder.run(&["convert", "ratelimit", file]);
        assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
        assert!(ended.stderr.contains(file), "{ended:?}");
    }
    assert_eq!(folder.run(&["convert", "ratelimit"]).code, Some(2));
    assert_eq!(folder.run(&["convert"]).code, Some(2));
}

#[test]
fn metadata_of_a_descriptor_is_left_out_and_said() {
    let text =
        EDGE.replace("requests_per_unit: 10}\n", "requests_per_unit: 10}\n    metadata: {service: {name: one}}\n");
    let ended = Folder::with(&text).run(&["convert", "ratelimit", "portcullis.yaml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("warning: `metadata` is left out"), "{ended:?}");
}

#[test]
fn config_maps_and_documents_become_one_configuration_that_passes_check() {
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  edge.yaml: |\n{}---\ndomain: shop\ndescriptors: [{{key: user}}]\n",
        EDGE.lines().flat_map(|line| ["    ", line, "\n"]).collect::<String>()
    );
    let folder = Folder::with(&map);
    let ended = folder.run(&["convert", "ratelimit", "portcullis.yaml"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("{domain: edge}") && ended.stdout.contains("{domain: shop}"), "{}", ended.stdout);
    fs::write(folder.path().join("portcullis.yaml"), &ended.stdout).expect("a file");
    let checked = folder.run(&["check", "--deny-warnings"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    folder.write("bad.yaml", &map.replace("unit: second, requests_per_unit: 10", "uint: second"));
    let bad = folder.run(&["convert", "ratelimit", "bad.yaml"]);
    assert_eq!((bad.code, &*bad.stdout), (Some(1), ""), "{bad:?}");
    assert!(bad.stderr.contains("bad.yaml[edge.yaml]:4:") && bad.stderr.contains("did you mean `unit`?"), "{bad:?}");
    assert!(!bad.stderr.contains("no valid `unit`"), "{bad:?}");
}
