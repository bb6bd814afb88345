//! The numbers as tables in Markdown.

use std::iter;

use super::job::Job;
use super::measure::Plan;
use super::proxy::Proxy;
use super::{against_first, cores, instructions, measure, shared};

/// The table of limits in memory.
pub(crate) fn print(plan: &Plan, jobs: &[Job], rows: &[measure::Row]) {
    let references: Vec<&measure::Row> = rows.iter().filter(|row| row.proxy.is_reference()).collect();
    let compared = |row: &measure::Row| if row.proxy.is_reference() { &[] } else { &references[..] }.iter();
    let columns = rows.iter().flat_map(|row| {
        let against = compared(row).map(|reference| format!("against {}", reference.proxy.name));
        iter::once(row.proxy.name.to_owned()).chain(against)
    });
    head("one core: CPU per request", columns, "goal against nginx");
    for (index, job) in jobs.iter().enumerate() {
        let cells = rows.iter().flat_map(|row| {
            let ratios =
                compared(row).map(move |reference| format!("{:.2}", ratio(&row.cpu[index], &reference.cpu[index])));
            iter::once(format!("{:.1} us", median(row.cpu[index].clone()))).chain(ratios)
        });
        line(job.name, cells, goal(job, 2));
    }
    println!("\nMedians of {} rounds; ratios are medians of those of the same round.", plan.rounds);
}

/// The table of what does nothing yet, or nothing more.
pub(crate) fn print_idle(plan: &Plan, jobs: &[Job], rows: &[measure::Row]) {
    head("one core", names(rows.iter().map(|row| row.proxy)), "goal");
    let held = jobs.iter().flat_map(|job| plan.idle.iter().map(move |count| (job, count)));
    for (index, (job, count)) in held.enumerate() {
        let name = format!("KiB per {}, of {count}", job.name);
        line(&name, rows.iter().map(|row| format!("{:.1}", row.idle_kib[index])), goal(job, 1));
    }
    if rows.iter().any(|row| !row.start_millis.is_empty()) {
        let starts = rows.iter().map(|row| format!("{:.0} ms", median(row.start_millis.clone())));
        line("start to first answer", starts, String::new());
    }
}

/// The table of two cores against one.
pub(crate) fn print_cores(plan: &Plan, rows: &[cores::Row]) {
    head("two cores against one", names(rows.iter().map(|row| row.proxy)), "goal");
    let medians =
        |of: fn(&cores::Row) -> &[f64]| rows.iter().map(move |row| format!("{:.2}", median(of(row).to_vec())));
    line("requests per second, load and application on the same cores", medians(|row| &row.per_second), String::new());
    line("CPU per request", medians(|row| &row.cpu), String::new());
    line("work of the busier worker", medians(|row| &row.busiest), String::new());
    let served = rows.iter().map(|row| format!("{:.2}", median(row.cpu.iter().map(|cpu| 2.0 / cpu).collect())));
    line("so that two workers serve, against one (2 / CPU per request)", served, format!("{CORES_GOAL:.2}"));
    println!("\nMedians of {} rounds.", plan.rounds);
}

/// What two cores are to serve when one serves 1.
const CORES_GOAL: f64 = 1.8;

/// The table of limits that are decided in Redis.
pub(crate) fn print_shared(plan: &Plan, rows: &[shared::Row]) {
    let reference = rows.iter().find(|row| row.proxy == Proxy::NGINX);
    println!(
        "\n| a limit in Redis, one core for both, 64 connections | proxy: CPU per request | Redis: CPU per request | \
         requests per second |"
    );
    println!("| --- | --- | --- | --- |");
    for row in rows {
        let cell = |of: fn(&shared::Row) -> &[f64], unit: &str| match reference {
            None => format!("{:.1}{unit}", median(of(row).to_vec())),
            Some(reference) => against(of(row), of(reference), unit),
        };
        let cells =
            [cell(|row| &row.proxy_cpu, " us"), cell(|row| &row.redis_cpu, " us"), cell(|row| &row.per_second, "")];
        let name = if row.proxy == Proxy::NGINX { "nginx with Lua" } else { row.proxy.name };
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!("\nMedians of {} rounds.", plan.rounds);
}

/// A table of jobs of one process, against the first of them.
pub(crate) fn print_against_first(plan: &Plan, title: &str, rows: &[against_first::Row]) {
    println!("\n| {title} | CPU per request |");
    println!("| --- | --- |");
    for row in rows {
        println!("| {} | {} |", row.name, against(&row.cpu, &rows[0].cpu, " us"));
    }
    println!("\nRatios against the first row, medians of {} rounds.", plan.rounds);
}

/// The table of instructions.
pub(crate) fn print_instructions(proxies: &[Proxy], rows: &[instructions::Row]) {
    println!("\n| per request | {} |", names(proxies.iter().copied()).collect::<Vec<_>>().join(" | "));
    println!("| --- |{}", " --- |".repeat(proxies.len()));
    for row in rows {
        let cells: Vec<String> = row.counts.iter().map(ToString::to_string).collect();
        println!("| {} | {} |", row.name, cells.join(" | "));
    }
}

fn names(proxies: impl Iterator<Item = Proxy>) -> impl Iterator<Item = String> {
    proxies.map(|proxy| proxy.name.to_owned())
}

/// The head of a table with these columns and a last one.
fn head(what: &str, columns: impl Iterator<Item = String>, last: &str) {
    let columns: Vec<String> = columns.collect();
    println!("\n| {what} | {} | {last} |\n| --- |{} --- |", columns.join(" | "), " --- |".repeat(columns.len()));
}

fn line(name: &str, cells: impl Iterator<Item = String>, last: String) {
    let cells: Vec<String> = cells.chain([last]).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

fn goal(job: &Job, digits: usize) -> String {
    job.goal.map_or(String::new(), |goal| format!("{goal:.digits$}"))
}

/// The ratio to those of the same rounds, and the number itself.
fn against(ours: &[f64], theirs: &[f64], unit: &str) -> String {
    format!("{:.2} ({:.1}{unit})", ratio(ours, theirs), median(ours.to_vec()))
}

fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
