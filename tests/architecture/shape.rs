//! The shape of the sources as a whole: how many files, how long, and which folders import each other.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Figures of `scripts/shape`, and the most that each may be. Lower a bound when its figure has fallen.
const AT_MOST: &[(&str, u64)] = &[
    ("files", 500),
    ("files_over_500_lines", 0),
    ("imports_per_thousand_lines", 60),
    ("rings_between_folders", 0),
    ("gateway_back_arrows", 3),
    ("files_that_write_a_stage", 4),
    ("files_of_a_new_algorithm", 3),
    ("files_of_a_new_deny_action", 9),
    ("files_of_a_new_forwarded_header", 3),
    ("files_of_a_new_gauge", 2),
    ("files_of_a_new_key_selector", 7),
];

#[test]
fn the_sources_keep_their_shape() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/shape");
    let output = Command::new("python3").arg(&script).arg("--details").output().expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let figures: BTreeMap<&str, u64> = text
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split_once(' ').expect("a name and a value"))
        .map(|(name, value)| (name, value.parse().expect("a number")))
        .collect();
    for (name, most) in AT_MOST {
        let figure = figures[name];
        assert!(figure <= *most, "{name} is {figure}, and may be at most {most}:\n{text}");
    }
    assert!((120..=250).contains(&figures["median_lines"]), "a file has one subject, and all of it:\n{text}");
}
