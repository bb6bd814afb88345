//! The generator against the readers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use crate::case::Case;
use crate::generate::{KINDS, Kind};
use crate::reader::{Connection, Reader, Reading};
use crate::shrink::shrink;
use crate::{charged, reader};

/// A reader that has read the name where neither the name nor the empty value was charged.
#[derive(Debug)]
struct Exception {
    /// Which program, and which case.
    reader: usize,
    number: u64,
    reading: Reading,
}

/// How often each parser has read the name from each source.
type Readings = BTreeMap<(String, String), usize>;

#[test]
fn whatever_name_a_reader_reads_that_name_or_the_empty_value_is_charged() {
    let readings = check(&KINDS.iter().collect::<Vec<_>>(), 0..1500, 6);
    // Where nothing is read, nothing is shown.
    let rare: Vec<_> = readings.iter().filter(|(_, times)| **times < 5).collect();
    assert!(rare.is_empty() && readings.len() >= PARSERS, "{} parsers; seldom read: {rare:?}", readings.len());
}

/// Parsers, each with each source that it reads.
const PARSERS: usize = 70;

#[test]
#[ignore = "takes an hour; KIND, FROM and CASES choose what is tried"]
fn whatever_name_a_reader_reads_of_very_many_requests_is_charged() {
    let wanted = env::var("KIND").ok();
    let kinds: Vec<_> = KINDS.iter().filter(|kind| wanted.as_ref().is_none_or(|wanted| wanted == kind.name)).collect();
    let from = number("FROM").unwrap_or(0);
    check(&kinds, from..from + number("CASES").unwrap_or(100_000), 50);
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// Tries these cases of each kind. Those in which no reading can be an exception need not be sent: one in so many of them is.
#[expect(clippy::print_stdout, reason = "what was tried is read")]
#[track_caller]
fn check(kinds: &[&Kind], numbers: Range<u64>, one_in: u64) -> Readings {
    let readers = reader::start();
    let mut failures = String::new();
    let mut readings = Readings::new();
    for kind in kinds {
        let selectors = kind.selectors();
        let cases: Vec<(u64, Case)> = numbers
            .clone()
            .map(|number| (number, kind.case(number)))
            .filter(|(number, case)| number % one_in == 0 || charged::at_stake(case, &selectors))
            .collect();
        let exceptions = exceptions(&cases, &readers, &mut readings);
        println!(
            "{}: {} tried, {} sent, {} exceptions",
            kind.name,
            numbers.end - numbers.start,
            cases.len(),
            exceptions.len()
        );
        failures.push_str(&told(kind, &exceptions, &readers));
    }
    for ((reader, source), times) in &readings {
        println!("{reader} has read the name {times} times in {source}");
    }
    assert!(failures.is_empty(), "\n{failures}");
    readings
}

/// Sends each case to each reader.
fn exceptions(cases: &[(u64, Case)], readers: &[Reader], readings: &mut Readings) -> Vec<Exception> {
    let (exceptions, readings) = (Mutex::new(Vec::new()), Mutex::new(readings));
    let next: Vec<_> = readers.iter().map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        for (at, next) in next.iter().enumerate().flat_map(|pair| [pair; CONNECTIONS]) {
            let (exceptions, readings) = (&exceptions, &readings);
            scope.spawn(move || {
                let mut connection = readers[at].connect();
                while let Some((number, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for reading in connection.read(case) {
                        if charged::is_the_name(&reading.value, None) {
                            let parser = (reading.reader.clone(), reading.source.clone());
                            *readings.lock().expect("no panic").entry(parser).or_default() += 1;
                        }
                        if is_exception(case, &reading) {
                            let exception = Exception { reader: at, number: *number, reading };
                            exceptions.lock().expect("no panic").push(exception);
                        }
                    }
                }
            });
        }
    });
    exceptions.into_inner().expect("no panic")
}

/// To each reader at a time.
const CONNECTIONS: usize = 2;

/// Whether the gateway has charged neither the name nor the empty value where this was read.
fn is_exception(case: &Case, reading: &Reading) -> bool {
    let mut selectors = charged::selectors(&reading.source, &reading.name);
    selectors.retain(|selector| charged::is_the_name(&reading.value, Some(selector)));
    !selectors.is_empty() && charged::at_stake(case, &selectors)
}

/// The exceptions as a person reads them: of those with the same tricks the shortest, made shorter.
fn told(kind: &Kind, exceptions: &[Exception], readers: &[Reader]) -> String {
    let mut groups: BTreeMap<Vec<&str>, Vec<(usize, &Exception)>> = BTreeMap::new();
    for exception in exceptions {
        let case = kind.case(exception.number);
        let length = case.bytes("/").len();
        let mut tricks = case.tricks;
        tricks.sort_unstable();
        tricks.dedup();
        groups.entry(tricks).or_default().push((length, exception));
    }
    let mut text = String::new();
    if !exceptions.is_empty() {
        let (count, groups) = (exceptions.len(), groups.len());
        writeln!(text, "## {}: {count} exceptions in {groups} groups", kind.name).expect("a string");
    }
    let mut told = BTreeSet::new();
    for (tricks, group) in groups.iter().take(MOST_TOLD) {
        let (_, Exception { reader, number, reading }) = group.iter().min_by_key(|(length, _)| *length).expect("one");
        let mut connection = readers[*reader].connect();
        let case = kind.case(*number);
        let small = shrink(case, &mut |case| still_fails(&mut connection, case, reading));
        if !told.insert(small.to_string()) {
            continue;
        }
        let mut by: Vec<_> = group.iter().map(|(_, exception)| exception.reading.reader.as_str()).collect();
        by.sort_unstable();
        by.dedup();
        let selectors = charged::selectors(&reading.source, &reading.name);
        let values = charged::values(&small, &selectors);
        let Reading { reader, source, name, .. } = reading;
        writeln!(
            text,
            "- case {number} {tricks:?}: {reader} reads the name in {source} {name}; {selectors:?} charge {values:?}; alike: {} by {by:?}\n{small}",
            group.len()
        )
        .expect("a string");
    }
    text
}

/// Groups of exceptions that are shown: shrinking one takes seconds.
const MOST_TOLD: usize = 20;

fn still_fails(connection: &mut Connection<'_>, case: &Case, reading: &Reading) -> bool {
    // Asking the gateway costs less than asking the reader.
    charged::at_stake(case, &charged::selectors(&reading.source, &reading.name))
        && connection.read(case).iter().any(|found| {
            (&found.reader, &found.source, &found.name) == (&reading.reader, &reading.source, &reading.name)
                && is_exception(case, found)
        })
}
