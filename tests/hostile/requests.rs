//! The table of hostile requests: each alone, and each with a valid request behind it on the same connection.

use std::time::Duration;

use crate::strict;
use crate::support::{RawClient, eventually};
use crate::table::{FIRST_CHUNK, Outcome, Row, rows};
use crate::watched::Watched;

const BOUNDS: &str = "{max_body: 1KiB, max_header_bytes: 16KiB, max_headers: 50, timeouts: {body_idle: 5s}}";

const SECOND: &str = "GET /second HTTP/1.1\r\nHost: second.example\r\n\r\n";
const SECOND_ARRIVES: &str = "GET /second HTTP/1.1\r\nhost: second.example\r\n\r\n";

#[test]
fn each_row_gets_its_answer_and_the_application_exactly_its_bytes() {
    let mut watched = Watched::start(BOUNDS);
    let wrong: Vec<String> = rows().iter().filter_map(|row| meets(&mut watched, row, "").err()).collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    watched.were_decided_on();
    watched.were_logged();
}

#[test]
fn nothing_is_smuggled_with_what_follows_a_row() {
    let mut watched = Watched::start(BOUNDS);
    let rows = rows();
    let closed = rows.iter().filter(|row| !row.is_open_ended);
    let wrong: Vec<String> = closed.filter_map(|row| meets(&mut watched, row, SECOND).err()).collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    watched.were_decided_on();
}

#[test]
fn the_table_is_long_and_its_names_are_its_own() {
    let mut names: Vec<&str> = rows().iter().map(|row| row.name).collect();
    let count = names.len();
    assert!(count >= 200, "{count}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Sends a row with that behind it, and says what came otherwise than it should.
fn meets(watched: &mut Watched, row: &Row, behind: &str) -> Result<(), String> {
    let mut client = watched.gateway.connect();
    let (first, rest) = row.parts();
    if rest.is_empty() {
        client.send([first, behind.as_bytes()].concat());
    } else {
        client.send(first);
        eventually("a part of the body arrives", || watched.has_arrived(FIRST_CHUNK));
        client.send([rest, behind.as_bytes()].concat());
    }
    let method = if row.sent.starts_with(b"HEAD") { "HEAD" } else { "GET" };
    let answer = client.try_response(method);
    let status = answer.as_ref().map_or(0, |answer| answer.status);
    if let Some(answer) = answer {
        let ids = answer.headers.all("x-request-id");
        let [id] = ids[..] else { return Err(format!("{}: {status} with the ids {ids:?}", row.name)) };
        watched.note_answer(id, status);
    }
    let has_second = !behind.is_empty();
    let (expected, goes_on, whole, started) = match row.outcome {
        Outcome::Refused(status) => (status, false, None, None),
        Outcome::Passes(arrives) => (200, true, Some(arrives), None),
        Outcome::PassesLast(arrives) => (200, false, Some(arrives), None),
        Outcome::Breaks(status, starts) => (status, false, None, Some(starts)),
    };
    let went_on = if goes_on { next_is_answered(&mut client, has_second) } else { !has_ended(&mut client) };
    eventually("no request is under way", || watched.origin.heads().len() == watched.origin.requests().len());
    let news = watched.news(row.name);
    let is_cut = |started: &str| match (news.whole.as_slice(), news.cut_short.as_slice()) {
        ([], [start]) => strict::shape_of_start(start).starts_with(started),
        _ => false,
    };
    if started.is_some_and(is_cut) && (status, went_on) == (expected, goes_on) {
        return Ok(());
    }
    let mut got: Vec<String> = news.whole.iter().map(strict::Arrival::shape).collect();
    got.extend(news.cut_short.iter().map(|start| format!("cut short: {}", strict::shape_of_start(start))));
    let mut should: Vec<String> = whole.map(str::to_owned).into_iter().collect();
    should.extend(started.map(|start| format!("cut short: {start}..")));
    if goes_on {
        should.push(SECOND_ARRIVES.to_owned());
    }
    if (status, went_on, &got) == (expected, goes_on, &should) {
        return Ok(());
    }
    Err(format!(
        "{}: {status}, goes on: {went_on}, arrived: {got:?}; expected {expected}, {goes_on}, {should:?}",
        row.name
    ))
}

/// Whether the connection carries another request, sent now unless it was sent before.
fn next_is_answered(client: &mut RawClient, was_sent: bool) -> bool {
    if !was_sent {
        client.send(SECOND);
    }
    client.try_response("GET").is_some_and(|answer| answer.status == 200 && answer.text() == "/second")
}

/// Whether there is an end, and nothing before it.
fn has_ended(client: &mut RawClient) -> bool {
    client.ends_within(Duration::from_secs(5)) && client.rest().is_empty()
}
