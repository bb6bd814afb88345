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
const SLACK: f64 = 5.0;

/// The same of misses, which depend on where the kernel puts things.
const SLACK_OF_MISSES: f64 = 15.0;

/// Less than one of each request: tasks in the background do more in the time that requests take on a slower machine.
const SLACK_OF_ALLOCATIONS: f64 = 0.9;

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
        let Some(figures) = self.figures(name) else {
            return Err(format!("{FILE} has no figures of `{name}`, which takes {counts}. {HOW}"));
        };
        let percent = |figure, percent| figure * percent / 100.0;
        let kinds = [
            ("user instructions", counts.instructions, figures.instructions, percent(figures.instructions, SLACK)),
            ("allocations", counts.allocations, figures.allocations, SLACK_OF_ALLOCATIONS),
            ("cache misses", counts.misses, figures.misses, percent(figures.misses, SLACK_OF_MISSES)),
            ("copied bytes", counts.copied, figures.copied, percent(figures.copied, SLACK)),
        ];
        if let Some((kind, count, figure, slack)) =
            kinds.into_iter().find(|(_, count, figure, slack)| *count > figure + slack)
        {
            return Err(format!(
                "`{name}` takes {count:.1} {kind} per request, more than the {figure} in {FILE}, beyond which {slack:.1} are \
                 allowed. If the change is worth it: {HOW}"
            ));
        }
        if kinds.into_iter().any(|(_, count, figure, slack)| count < figure - slack) {
            eprintln!("`{name}` takes {counts} per request, less than in {FILE}. {HOW}");
        }
        Ok(())
    }

    /// The file with these figures, and with its own of rows that were not counted.
    fn text_with(&self, counted: &[(&str, Counts)]) -> String {
        let figures = |name| counted.iter().find(|(other, _)| *other == name).map(|(_, counts)| *counts);
        let line = |name| {
            let Counts { instructions, allocations, misses, copied } = figures(name).or_else(|| self.figures(name))?;
            Some(format!(
                "\"{name}\" = {{ instructions = {instructions:.0}, allocations = {allocations:.1}, misses = {misses:.0}, \
                 copied = {copied:.0} }}\n"
            ))
        };
        let lines: String = COUNTED.iter().filter_map(|job| line(job.name)).collect();
        format!("{HEAD}compiler = \"{}\"\n\n{lines}", compiler())
    }
}

/// The figures of a row, as the file has them.
fn figures(value: &str) -> Option<Counts> {
    let figures = value.strip_prefix("{ ")?.strip_suffix(" }")?;
    let figure = |name: &str| {
        let (_, number) =
            figures.split(", ").filter_map(|figure| figure.split_once(" = ")).find(|(it, _)| *it == name)?;
        number.parse().ok()
    };
    Some(Counts {
        instructions: figure("instructions")?,
        allocations: figure("allocations")?,
        misses: figure("misses")?,
        copied: figure("copied")?,
    })
}

const HOW: &str = "`UPDATE_EXPECT=1 tests/instructions` writes new figures.";

const HEAD: &str = "\
# What a request takes: user instructions and bytes that are copied in memory, which `tests/instructions` holds with 5 % slack,
# misses of simulated caches, with 15 %, and allocations of memory, with 0.9. It counts the build of `tests/counted`, which
# takes less time to build than a release and whose requests take more instructions.
# `UPDATE_EXPECT=1 tests/instructions` writes this file.
";

/// That of this machine. Another one may generate other code.
fn compiler() -> String {
    let version = Command::new("rustc").arg("--version").output().expect("a compiler");
    String::from_utf8_lossy(&version.stdout).trim().to_owned()
}
