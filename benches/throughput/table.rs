//! The numbers as a table in Markdown.

use super::measure::JOBS;
use super::measure::Plan;
use super::outcome;
use super::peer::Kind;
use super::shared;

/// What was measured of one proxy.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    /// Microseconds for each round, by job.
    pub(crate) cpu: [Vec<f64>; JOBS.len()],
    pub(crate) idle_kib: Vec<f64>,
    pub(crate) start_millis: Vec<f64>,
}

impl Row {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, cpu: std::array::from_fn(|_| Vec::new()), idle_kib: Vec::new(), start_millis: Vec::new() }
    }
}

pub(crate) fn print(plan: &Plan, rows: &[Row]) {
    let reference = rows.iter().find(|row| row.kind == Kind::Nginx);
    let names: Vec<&str> = rows.iter().map(|row| row.kind.name()).collect();
    println!("\n| one core | {} |\n| --- |{}", names.join(" | "), " --- |".repeat(rows.len()));
    let line = |name: &str, cell: &dyn Fn(&Row) -> String| {
        let cells: Vec<String> = rows.iter().map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    for (index, job) in JOBS.iter().enumerate() {
        line(&format!("{}: CPU per request", job.name), &|row| {
            let absolute = format!("{:.1} us", median(row.cpu[index].clone()));
            let Some(reference) = reference else { return absolute };
            let ratios = row.cpu[index].iter().zip(&reference.cpu[index]).map(|(ours, theirs)| ours / theirs);
            format!("{:.2} ({absolute})", median(ratios.collect()))
        });
    }
    for (index, count) in plan.idle.iter().enumerate() {
        line(&format!("KiB per idle connection, of {count}"), &|row| format!("{:.1}", row.idle_kib[index]));
    }
    line("start to first answer", &|row| format!("{:.0} ms", median(row.start_millis.clone())));
    match reference {
        Some(_) => println!("\nRatios against nginx, medians of {} rounds.", plan.rounds),
        None => println!("\nWithout nginx there are no ratios."),
    }
}

/// The table of limits that are decided in Redis.
pub(crate) fn print_shared(plan: &Plan, rows: &[shared::Row]) {
    let reference = rows.iter().find(|row| row.kind == Kind::NginxLua);
    println!(
        "\n| a limit in Redis, one core for both, 64 connections | proxy: CPU per request | Redis: CPU per request | \
         requests per second |"
    );
    println!("| --- | --- | --- | --- |");
    for row in rows {
        let cell = |of: fn(&shared::Row) -> &[f64], unit: &str| {
            let absolute = format!("{:.1}{unit}", median(of(row).to_vec()));
            let Some(reference) = reference else { return absolute };
            let ratios = of(row).iter().zip(of(reference)).map(|(ours, theirs)| ours / theirs);
            format!("{:.2} ({absolute})", median(ratios.collect()))
        };
        let cells =
            [cell(|row| &row.proxy_cpu, " us"), cell(|row| &row.redis_cpu, " us"), cell(|row| &row.per_second, "")];
        println!("| {} | {} |", row.kind.name(), cells.join(" | "));
    }
    println!("\nMedians of {} rounds.", plan.rounds);
}

/// The table of limits that count answers, against the first row.
pub(crate) fn print_outcome(plan: &Plan, rows: &[outcome::Row]) {
    println!("\n| portcullis, one core, 64 keep-alive connections | CPU per request |");
    println!("| --- | --- |");
    for row in rows {
        let ratios = row.cpu.iter().zip(&rows[0].cpu).map(|(counted, plain)| counted / plain).collect();
        println!("| {} | {:.2} ({:.1} us) |", row.name, median(ratios), median(row.cpu.clone()));
    }
    println!("\nRatios against the first row, medians of {} rounds.", plan.rounds);
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
