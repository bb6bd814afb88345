//! The workflows that check and release: what they take from elsewhere is named exactly, and a release says what it is made of.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::succeed;

#[test]
fn actions_are_named_by_their_commit() {
    let mut named = 0;
    for (file, text) in workflows() {
        for line in text.lines().filter_map(|line| line.split_once("uses: ").map(|(_, action)| action)) {
            let (action, release) =
                line.split_once(" # v").unwrap_or_else(|| panic!("{file}: {line} names no release"));
            let (_, commit) = action.split_once('@').expect("an action has a version");
            assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{file}: {line}");
            assert!(release.split('.').count() == 3, "{file}: {line} names no exact release");
            named += 1;
        }
    }
    assert!(named > 5, "only {named} actions were found");
}

#[test]
fn tools_are_installed_in_one_version_alone() {
    let mut installed = 0;
    let scripts = [".ci/run", "docs/build", "packaging/bill-of-materials", "packaging/test"].map(str::to_owned);
    let scripts = scripts.map(|file| (fs::read_to_string(&file).expect("the script"), file));
    for (file, text) in workflows().into_iter().chain(scripts.map(|(text, file)| (file, text))) {
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            if line.contains("cargo install") {
                assert!(line.contains("--locked") && line.contains("--version"), "{file}: {line}");
                installed += 1;
            }
            if line.trim_start().starts_with("go install") {
                assert!(line.contains("@v"), "{file}: {line}");
                installed += 1;
            }
        }
    }
    assert!(installed > 4, "only {installed} tools were found");
}

#[test]
fn only_the_job_that_publishes_may_write_and_it_builds_nothing() {
    let workflow = fs::read_to_string(RELEASE).expect("the workflow");
    let (build, publish) = workflow.split_once("\n  publish:\n").expect("two jobs");
    assert!(!build.contains(": write"), "what builds may not write");
    for right in ["contents: write", "id-token: write", "attestations: write"] {
        assert!(publish.contains(right), "{right}");
    }
    assert!(publish.contains("needs: build"), "it publishes what was built and tested");
    for builder in ["scripts/build-release", "packaging/deb", "packaging/static", "docker build "] {
        assert!(build.contains(builder) && !publish.contains(builder), "{builder}");
    }
}

#[test]
fn a_release_is_tested_before_it_is_built_and_signed_before_it_is_published() {
    let workflow = fs::read_to_string(RELEASE).expect("the workflow");
    let steps = [
        "packaging/test",
        "packaging/deb",
        "packaging/static",
        "--save-profile",
        "packaging/bill-of-materials",
        "> SHA256SUMS",
        "actions/attest-build-provenance@",
        "gh release create",
    ];
    let places: Vec<usize> =
        steps.iter().map(|step| workflow.find(step).unwrap_or_else(|| panic!("no step does {step}"))).collect();
    assert!(places.is_sorted(), "{steps:?} stand at {places:?}");
    for processor in ["ubuntu-22.04\n", "ubuntu-22.04-arm\n"] {
        assert!(workflow.contains(&format!("system: {processor}")), "nothing is built on {processor}");
    }
}

#[test]
#[ignore = "compiles a tool for a minute: packaging/test runs it"]
fn the_bill_of_materials_names_every_crate_of_the_binary() {
    let folder = tempfile::tempdir().expect("an empty folder");
    succeed(Command::new("packaging/bill-of-materials").arg(folder.path()));
    let files: Vec<_> =
        fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let bill: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).expect("the bill")).expect("JSON");
    assert_eq!(
        (&bill["bomFormat"], &bill["metadata"]["component"]["name"]),
        (&"CycloneDX".into(), &"portcullis".into())
    );
    let components = bill["components"].as_array().expect("components");
    let listed: Vec<(&str, &str)> = components
        .iter()
        .map(|component| {
            (component["name"].as_str().expect("a name"), component["version"].as_str().expect("a version"))
        })
        .collect();
    let tree = ["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let compiled = succeed(Command::new(env!("CARGO")).args(tree));
    let mut crates = 0;
    for line in compiled.lines().filter(|line| !line.starts_with("portcullis ")) {
        let (name, version) = line.split_once(" v").expect("a crate and its version");
        let version = version.split_whitespace().next().expect("a version");
        assert!(listed.contains(&(name, version)), "{name} {version} is not in the bill");
        crates += 1;
    }
    assert!(crates > 100, "only {crates} crates were found");
    assert!(
        components.iter().all(|component| component["hashes"][0]["content"].is_string()),
        "a crate lacks its checksum"
    );
}

/// Each workflow, and its text.
fn workflows() -> Vec<(String, String)> {
    let folder = Path::new(RELEASE).parent().expect("a folder");
    let files = fs::read_dir(folder).expect("the workflows").map(|entry| entry.expect("a workflow").path());
    files.map(|path| (path.display().to_string(), fs::read_to_string(&path).expect("text"))).collect()
}

const RELEASE: &str = ".github/workflows/release.yml";
