//! The figures that were counted before, and how far beyond them a change may go.

use std::process::Command;
use std::{env, fs, process};

use super::{Counts, Row};
use crate::job::COUNTED;

/// Fails where a row takes more instructions than the file allows. `UPDATE_EXPECT=1` writes the file.
pub(super) fn hold(rows: &[Row]) {
    let expected = Expected::read(&fs::read_to_string(PATH).unwrap_or_default());
    let counted: Vec<(&str, Counts)> = rows.iter().map(|row| (row.name, only(&row.counts))).collect();
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

fn only(counts: &[Counts]) -> Counts {
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
    figures: Vec<(String, Counts)>,
}

impl Expected {
    fn read(text: &str) -> Self {
        let mut expected = Self { compiler: String::new(), figures: Vec::new() };
        for (name, value) in text.lines().filter_map(|line| line.split_once(" = ")) {
            match figures(value) {
                Some(figures) => expected.figures.push((name.trim_matches('"').to_owned(), figures)),
                None => value.trim_matches('"').clone_into(&mut expected.compiler),
            }
        }
        expected
    }

    fn figures(&self, name: &str) -> Option<Counts> {
        self.figures.iter().find(|(known, _)| known == name).map(|(_, figures)| *figures)
    }

    /// Whether a row takes no more than it may, or what to say of it.
    fn hold(&self, name: &str, counts: Counts) -> Result<(), String> {
        let Some(Counts { instructions: figure, allocations }) = self.figures(name) else {
            return Err(format!("{FILE} has no figures of `{name}`, which takes {}. {HOW}", text_of(counts)));
        };
        let count = counts.instructions;
        let ceiling = figure + figure * SLACK / 100;
        if count > ceiling {
            let percent = (count - figure) * 100 / figure;
            return Err(format!(
                "`{name}` takes {count} user instructions per request, {percent} % more than the {figure} in {FILE}; at \
                 most {ceiling} are allowed. If the change is worth it: {HOW}"
            ));
        }
        if counts.allocations > allocations {
            return Err(format!(
                "`{name}` allocates memory {} times per request, more often than the {allocations} in {FILE}. If the change \
                 is worth it: {HOW}",
                counts.allocations
            ));
        }
        if count < figure - figure * SLACK / 100 || counts.allocations < allocations {
            eprintln!("`{name}` takes {} per request, less than in {FILE}. {HOW}", text_of(counts));
        }
        Ok(())
    }

    /// The file with these figures, and with its own of rows that were not counted.
    fn text_with(&self, counted: &[(&str, Counts)]) -> String {
        let figures = |name| counted.iter().find(|(other, _)| *other == name).map(|(_, counts)| *counts);
        let line = |name| {
            let Counts { instructions, allocations } = figures(name).or_else(|| self.figures(name))?;
            Some(format!("\"{name}\" = {{ instructions = {instructions}, allocations = {allocations} }}\n"))
        };
        let lines: String = COUNTED.iter().filter_map(|job| line(job.name)).collect();
        format!("{HEAD}compiler = \"{}\"\n\n{lines}", compiler())
    }
}

/// The figures of a row, as the file has them.
fn figures(value: &str) -> Option<Counts> {
    let (instructions, allocations) = value.strip_prefix("{ instructions = ")?.split_once(", allocations = ")?;
    let allocations = allocations.strip_suffix(" }")?.parse().ok()?;
    Some(Counts { instructions: instructions.parse().ok()?, allocations })
}

fn text_of(counts: Counts) -> String {
    format!("{} user instructions and {} allocations", counts.instructions, counts.allocations)
}

const HOW: &str = "`UPDATE_EXPECT=1 tests/instructions` writes new figures.";

const HEAD: &str = "\
# User instructions per request, which `tests/instructions` holds with 5 % slack, and allocations of memory, which it holds
# exactly. It counts a build of the profile `counted`, which takes less time to build than a release and whose requests
# take more instructions.
# `UPDATE_EXPECT=1 tests/instructions` writes this file.
";

/// That of this machine. Another one may generate other code.
fn compiler() -> String {
    let version = Command::new("rustc").arg("--version").output().expect("a compiler");
    String::from_utf8_lossy(&version.stdout).trim().to_owned()
}
