//! The figures that were counted before, and how far beyond them a change may go.

use std::env;
use std::fs;
use std::process;
use std::process::Command;

use super::Row;
use crate::job::COUNTED;

/// Fails where a row takes more instructions than the file allows. `UPDATE_EXPECT=1` writes the file.
pub(super) fn hold(rows: &[Row]) {
    let expected = Expected::read(&fs::read_to_string(PATH).unwrap_or_default());
    let counted: Vec<(&str, u64)> = rows.iter().map(|row| (row.name, only(&row.counts))).collect();
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(PATH, expected.text_with(&counted)).expect("the file can be written");
        return;
    }
    if !cfg!(target_arch = "x86_64") {
        eprintln!("Not held to {FILE}: its figures are of x86-64.");
        return;
    }
    let mut broken = 0;
    for (name, count) in counted {
        if let Err(sentence) = expected.hold(name, count) {
            eprintln!("{sentence}");
            broken += 1;
        }
    }
    if broken > 0 {
        if expected.compiler != compiler() {
            eprintln!("The figures are of {}, and this is {}.", expected.compiler, compiler());
        }
        process::exit(1);
    }
}

fn only(counts: &[u64]) -> u64 {
    let [count] = counts else { panic!("one build at a time is held to {FILE}: --only names it") };
    *count
}

const FILE: &str = "benches/throughput/instructions.toml";
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/throughput/instructions.toml");

/// A row may take so many more percent: other machines run other variants of the C library's functions.
const SLACK: u64 = 5;

/// The file.
#[derive(Debug)]
struct Expected {
    compiler: String,
    figures: Vec<(String, u64)>,
}

impl Expected {
    fn read(text: &str) -> Self {
        let mut expected = Self { compiler: String::new(), figures: Vec::new() };
        for (name, value) in text.lines().filter_map(|line| line.split_once(" = ")) {
            match value.parse() {
                Ok(figure) => expected.figures.push((name.trim_matches('"').to_owned(), figure)),
                Err(_) => value.trim_matches('"').clone_into(&mut expected.compiler),
            }
        }
        expected
    }

    fn figure(&self, name: &str) -> Option<u64> {
        self.figures.iter().find(|(known, _)| known == name).map(|(_, figure)| *figure)
    }

    /// Whether a row takes no more than it may, or what to say of it.
    fn hold(&self, name: &str, count: u64) -> Result<(), String> {
        let Some(figure) = self.figure(name) else {
            return Err(format!(
                "`{name}` takes {count} user instructions per request, and {FILE} has no figure. {HOW}"
            ));
        };
        let ceiling = figure + figure * SLACK / 100;
        if count > ceiling {
            let percent = (count - figure) * 100 / figure;
            return Err(format!(
                "`{name}` takes {count} user instructions per request, {percent} % more than the {figure} in {FILE}; at \
                 most {ceiling} are allowed. If the change is worth it: {HOW}"
            ));
        }
        if count < figure - figure * SLACK / 100 {
            eprintln!("`{name}` takes {count} user instructions per request, fewer than the {figure} in {FILE}. {HOW}");
        }
        Ok(())
    }

    /// The file with these figures, and with its own of rows that were not counted.
    fn text_with(&self, counted: &[(&str, u64)]) -> String {
        let figure = |name| counted.iter().find(|(other, _)| *other == name).map(|(_, count)| *count);
        let line = |name| Some(format!("\"{name}\" = {}\n", figure(name).or_else(|| self.figure(name))?));
        let lines: String = COUNTED.iter().filter_map(|job| line(job.name)).collect();
        format!("{HEAD}compiler = \"{}\"\n\n{lines}", compiler())
    }
}

const HOW: &str = "`UPDATE_EXPECT=1 tests/instructions` writes new figures.";

const HEAD: &str = "\
# User instructions per request, which `tests/instructions` holds with 5 % slack. It counts a build of the profile
# `counted`, which takes less time to build than a release and whose requests take more instructions.
# `UPDATE_EXPECT=1 tests/instructions` writes this file.
";

/// That of this machine. Another one may generate other code.
fn compiler() -> String {
    let version = Command::new("rustc").arg("--version").output().expect("a compiler");
    String::from_utf8_lossy(&version.stdout).trim().to_owned()
}
