//! Writes the proposed configuration.
//!
//! Everything in it is a number, an address, a path of plain letters, or the escaped name of a file: no text of a client
//! can become a key or end a comment.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;

use super::figures::{ClientFigures, Figures};
use crate::replay::input::log_file::{LineCounts, UnreadableInFile};
use crate::replay::report::{counted, number};
use crate::replay::suggest::figures::{Busy, SuggestedRate, round, suggest};
use crate::replay::suggest::{Application, FailureSign, RouteShape, login};
use crate::words::clock::Timestamp;

/// The requests and lines that were read.
#[derive(Debug)]
pub(super) struct LogSummary {
    pub(super) requests: u64,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) formats: Vec<&'static str>,
    pub(super) lines: LineCounts,
}

/// The configuration. `figures` has the routes of the application and the others in the same order, after all requests.
pub(super) fn write(
    source: &LogSummary,
    application: Option<&Application>,
    routes: &[RouteShape],
    figures: &Figures,
) -> String {
    let mut text = String::new();
    head(&mut text, source, figures);
    let has_hours = source.last.since(source.first).as_secs() >= ENOUGH_FOR_HOURS;
    let all_clients = clients(figures, 0);
    if !all_clients.is_empty() {
        text.push_str("\n# These hold for every request.\nlimits:\n");
        limit(&mut text, "  ", "per-client", &all_clients, &figures.attackers, (LEAST, has_hours));
    }
    if application.is_some() || !routes.is_empty() {
        text.push_str("\nroutes:\n");
    }
    let mut names = Vec::new();
    let known = application.map(|known| write_application(&mut text, known, &mut names)).unwrap_or_default();
    let statuses = &figures.routes[1 + known..];
    let logins =
        routes.iter().zip(statuses).map(|(shape, statuses)| login(&shape.method, &shape.path.to_string(), statuses));
    // The outcomes of a recipe are its own.
    let logins = std::iter::repeat_n(None, known).chain(logins).collect();
    let found = Found { figures, logins, has_hours };
    for (place, shape) in (1_u16..).skip(known).zip(routes) {
        if place > 1 {
            text.push('\n');
        }
        route(&mut text, place, shape, &found, &mut names);
    }
    text
}

/// Writes the routes of the recipe, and returns how many they are.
fn write_application(text: &mut String, known: &Application, names: &mut Vec<String>) -> usize {
    let Application { application, others } = known;
    let below = if application.prefix.is_empty() { String::new() } else { format!(" below {}", application.prefix) };
    put(
        text,
        &format!(
            "  # The application is {}{below}, by {}. These are the routes of its recipe:\n  # {}",
            application.recipe.purpose,
            counted(application.logins, "login"),
            application.command()
        ),
    );
    for other in others {
        put(text, &format!("  # There are logins of another application too: {other}"));
    }
    text.push_str(&application.text);
    names.extend(application.routes.iter().map(|route| route.name.to_string()));
    application.routes.len()
}

/// The findings in the logs.
struct Found<'f> {
    figures: &'f Figures,
    /// By route: why it is a login, and what tells a failure.
    logins: Vec<Option<(String, FailureSign)>>,
    has_hours: bool,
}

impl Found<'_> {
    fn login(&self, route: u16) -> Option<&(String, FailureSign)> {
        self.logins[usize::from(route) - 1].as_ref()
    }

    /// The figure that a limit of failures on this route counts. `None`: statuses do not show failures.
    fn failing(&self, route: u16) -> Option<fn(&ClientFigures) -> Busy> {
        let sign_of = |route| self.login(route).map(|(_, sign)| *sign).filter(|sign| *sign != FailureSign::None);
        let sign = sign_of(route)?;
        let mut earlier = self.figures.earlier[usize::from(route)].iter().filter_map(|&route| sign_of(route));
        if earlier.any(|earlier| earlier != sign) {
            return Some(|figures| figures.refused_or_ok);
        }
        match sign {
            FailureSign::Refused => Some(|figures| figures.refused),
            FailureSign::FormAgain => Some(|figures| figures.ok),
            FailureSign::None => None,
        }
    }
}

fn head(text: &mut String, source: &LogSummary, figures: &Figures) {
    let LogSummary { requests, first, last, formats, lines } = source;
    let remarks = [
        format!(
            "# Limits that this traffic would have lived with: {} of {}, {} to {} UTC ({}).",
            counted(*requests, "request"),
            counted(clients(figures, 0).len() as u64, "client"),
            moment(*first),
            moment(*last),
            formats.join(", ")
        ),
        "#".to_owned(),
        "# Each rate is ten times what an ordinary client did in its busiest minute or hour, and has room for four of five.".to_owned(),
        "# Clients that would have been denied are named. Read them, then try the file: portcullis replay -c FILE ACCESS.LOG".to_owned(),
    ];
    for remark in remarks {
        put(text, &remark);
    }
    if !figures.attackers.is_empty() {
        let named = figures.attackers.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let more = if figures.attackers.len() > NAMED { ", ..." } else { "" };
        let count = counted(figures.attackers.len() as u64, "client");
        put(
            text,
            &format!(
                "# Left out of all rates, because they look like attackers, by failed logins, by nothing but logins, or by paths\n\
                 # that are not there: {count}: {named}{more}"
            ),
        );
    }
    if lines.unreadable > 0 {
        let (unreadable, all) = (number(lines.unreadable), counted(lines.lines, "line"));
        put(text, &format!("# {unreadable} of {all} cannot be read: portcullis replay shows the first ones."));
        for UnreadableInFile { lines, unreadable, first } in &lines.by_file {
            let (unreadable, all) = (number(*unreadable), counted(*lines, "line"));
            put(text, &format!("# {}: {unreadable} of {all}, first line {}: {}", first.file, first.line, first.text));
        }
    }
    for file in &lines.unreadable_files {
        put(text, &format!("# {}: no line can be read.", file.escape_debug()));
    }
    if figures.is_cut {
        text.push_str(
            "# There were more clients than could be counted: those that came late are missing in the figures.\n",
        );
    }
    text.push_str(
        "\nlisten: 0.0.0.0:8080\nupstream: http://127.0.0.1:8000    # replace it by the address of your application\n",
    );
}

fn route(text: &mut String, place: u16, shape: &RouteShape, found: &Found<'_>, names: &mut Vec<String>) {
    let Found { figures, has_hours, .. } = *found;
    let statuses = &figures.routes[usize::from(place)];
    let path = shape.path.to_string();
    let name = name(&shape.method, &path, names);
    let clients = clients(figures, place);
    let login = found.login(place);
    let line = |text: &mut String, line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    let answers = format!(
        "{} % 401 or 403, {} % redirects",
        statuses.percent(statuses.refused),
        statuses.percent(statuses.redirects)
    );
    let (total, count) = (counted(statuses.total, "request"), counted(clients.len() as u64, "client"));
    line(text, &format!("  # {total} of {count}; {answers}."));
    if let Some((reason, _)) = login {
        line(text, &format!("  # It is {reason}."));
    }
    line(text, &format!("  - name: {name}"));
    line(text, &format!("    match: {{methods: [{}], path: \"{path}\"}}", shape.method));
    match login.map(|(_, sign)| sign) {
        Some(FailureSign::Refused) => line(text, "    outcome: {failure: {status: [401, 403]}}"),
        Some(FailureSign::FormAgain) => {
            line(text, "    # Successes seem to redirect, failures to show the form again: check that it is so.");
            line(text, "    outcome: {failure: {status: 200}}");
        }
        Some(FailureSign::None) => {
            line(text, "    # The statuses do not tell a failure: see the recipes for an `outcome`.");
        }
        None => {}
    }
    line(text, "    limits:");
    let least = if login.is_some() { LEAST_OF_LOGIN } else { LEAST };
    limit(text, "      ", &format!("{name}-pace"), &clients, &figures.attackers, (least, has_hours));
    let Some(failing) = found.failing(place) else { return };
    failures(text, &name, &clients, &figures.attackers, failing);
}

/// A limit of requests by client, with its reason.
fn limit(
    text: &mut String,
    indent: &str,
    name: &str,
    clients: &[(IpAddr, ClientFigures)],
    attackers: &BTreeSet<IpAddr>,
    (least, has_hours): (u64, bool),
) {
    let by = |busy: fn(&ClientFigures) -> Busy| {
        clients.iter().map(|(client, figures)| (*client, busy(figures))).collect::<Vec<_>>()
    };
    let Some(minute) = suggest(&by(|figures| figures.minute), attackers, least) else { return };
    let least_of_hour = minute.count.max(least * HOUR_TO_MINUTE);
    let hour = suggest(&by(|figures| figures.hour), attackers, least_of_hour).filter(|_| has_hours);
    reason(text, indent, "minute", &minute);
    let mut rate = format!("{}/minute", minute.count);
    if let Some(hour) = &hour {
        reason(text, indent, "hour", hour);
        rate = format!("{rate}; {}/hour", hour.count);
    }
    let largest = hour.map_or(minute.count, |hour| hour.count);
    // A log of each request would take much memory.
    let algorithm = if largest > LONGEST_LOG { ", algorithm: sliding-window-counter" } else { "" };
    put(text, &format!("{indent}- {{name: {name}, key: client_ip, rate: {rate}{algorithm}}}"));
}

/// The limits of failed logins.
fn failures(
    text: &mut String,
    name: &str,
    clients: &[(IpAddr, ClientFigures)],
    attackers: &BTreeSet<IpAddr>,
    failing: fn(&ClientFigures) -> Busy,
) {
    // A request needs a slot until it is known that it is no failure.
    let with_slots = |figures| failing(figures).beside(figures.most_in_progress);
    let failing: Vec<_> = clients.iter().map(|(client, figures)| (*client, with_slots(figures))).collect();
    let count = if let Some(rate) = suggest(&failing, attackers, LEAST_FAILURES) {
        reason(text, "      ", "hour", &rate);
        rate.count
    } else {
        let ordinary = failing.iter().filter(|(client, _)| !attackers.contains(client));
        let most = ordinary.map(|(_, busy)| u64::from(busy.most_anywhere)).max();
        round(most.unwrap_or_default().max(LEAST_FAILURES))
    };
    put(text, &format!("      - {{name: {name}-failures, key: client_ip, rate: {count}/hour, count: failures}}"));
    put(
        text,
        "      # Guesses at one account from many addresses. No log holds user names: write the field of your form.",
    );
    let account = format!(
        "name: {name}-account, key: {{param.username: {{fold: letters}}}}, missing: skip, rate: 20/hour, count: failures"
    );
    put(text, &format!("      - {{{account}}}"));
}

/// `# In an hour: 99 of 100 clients at most 4, the busiest 9.`
fn reason(text: &mut String, indent: &str, window: &str, rate: &SuggestedRate) {
    let article = if window == "hour" { "an" } else { "a" };
    let (usual, most) = (number(rate.usual.into()), number(rate.most.into()));
    let mut line = format!("{indent}# In {article} {window}: 99 of 100 clients at most {usual}, the busiest {most}.");
    if !rate.beyond.is_empty() {
        let named =
            rate.beyond.iter().take(NAMED).map(|(client, most)| format!("{client} ({})", number((*most).into())));
        let named: Vec<_> = named.collect();
        let more = if rate.beyond.len() > NAMED { ", ..." } else { "" };
        let count = number(rate.beyond.len() as u64);
        line = format!("{line} Beyond the rate: {count}: {}{more}", named.join(", "));
    }
    put(text, &line);
}

fn put(text: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

fn clients(figures: &Figures, route: u16) -> Vec<(IpAddr, ClientFigures)> {
    figures.clients(route).into_iter().map(|(client, figures)| (client, *figures)).collect()
}

/// A name of letters, digits and hyphens that no route has yet.
fn name(method: &str, path: &str, names: &mut Vec<String>) -> String {
    let mut plain = String::new();
    for letter in format!("{method}{path}").chars() {
        let letter = if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        if letter != '-' || !plain.ends_with('-') {
            plain.push(letter);
        }
    }
    let plain = plain.trim_matches('-').to_owned();
    let mut name = plain.clone();
    let mut number = 2;
    while names.contains(&name) {
        name = format!("{plain}-{number}");
        number += 1;
    }
    names.push(name.clone());
    name
}

/// `2026-11-21 07:58`
fn moment(at: Timestamp) -> String {
    at.to_string().get(..16).unwrap_or_default().replace('T', " ")
}

/// No rate is lower: a person who clicks quickly is no attack.
const LEAST: u64 = 30;

const LEAST_OF_LOGIN: u64 = 10;

const LEAST_FAILURES: u64 = 10;

/// The lowest rate of an hour, as a multiple of the rate of a minute.
const HOUR_TO_MINUTE: u64 = 5;

/// In seconds. The figures of a shorter log say nothing about an hour.
const ENOUGH_FOR_HOURS: u64 = 2 * 3600;

/// In requests of one client.
const LONGEST_LOG: u64 = 5000;

/// How many clients a comment names.
const NAMED: usize = 3;
