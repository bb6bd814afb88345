//! Hostile requests over HTTP/2, each on a connection that then carries a valid one.

mod rows;

use std::time::Duration;

use self::rows::{GET, rows};
use crate::frames::{Client, Fate, Field, head};
use crate::strict;
use crate::support::eventually;
use crate::watched::Watched;

/// What is sent, what becomes of stream 1 and what the application gets for it.
struct Row {
    name: &'static str,
    /// Sent first. Where something follows, the application must have got a head before.
    first: Vec<u8>,
    then: Vec<u8>,
    fate: Fate,
    arrives: Arrives,
}

#[derive(Clone, Copy)]
enum Arrives {
    Nothing,
    Exactly(&'static str),
    /// This, and never a whole request.
    Cut(&'static str),
}

const SECOND: &str = "GET /second HTTP/1.1\r\nhost: second.example\r\n\r\n";

#[test]
fn each_row_meets_its_fate_and_the_application_gets_exactly_its_bytes() {
    let mut watched = Watched::start("{max_header_bytes: 16KiB, max_headers: 50, timeouts: {body_idle: 5s}}");
    let mut names = std::collections::HashSet::new();
    let rows = rows();
    let wrong: Vec<String> = rows.iter().filter_map(|row| meets(&mut watched, row).err()).collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows.iter().all(|row| names.insert(row.name)), "a name twice");
    watched.were_decided_on();
    watched.were_logged();
}

fn meets(watched: &mut Watched, row: &Row) -> Result<(), String> {
    let stream = watched.gateway.connect().into_stream();
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout above zero");
    let mut client = Client::open(stream);
    client.send(&row.first);
    if !row.then.is_empty() {
        eventually("a head arrives", || watched.has_arrived(b"\r\n\r\n"));
        client.send(&row.then);
    }
    let fate = client.fate(1);
    if let Fate::Answered(status) = fate {
        let Some(id) = client.request_id() else { return Err(format!("{}: {status} without an id", row.name)) };
        watched.note_answer(&id, status);
    }
    let second = if fate == Fate::Ended {
        Fate::Ended
    } else {
        let fields: &[Field<'_>] = &[GET[0], GET[1], (b":authority", b"second.example"), (b":path", b"/second")];
        client.send(&head(3, true, fields));
        client.fate(3)
    };
    eventually("no request is under way", || watched.origin.heads().len() == watched.origin.requests().len());
    let news = watched.news(row.name);
    let mut got: Vec<String> = news.whole.iter().map(strict::Arrival::shape).collect();
    let goes_on = row.fate != Fate::Ended;
    let is_second = if goes_on { got.pop().as_deref() == Some(SECOND) } else { true };
    let cut: Vec<String> = news.cut_short.iter().map(|start| strict::shape_of_start(start)).collect();
    let as_should = match row.arrives {
        Arrives::Nothing => got.is_empty() && cut.is_empty(),
        Arrives::Exactly(bytes) => got == [bytes] && cut.is_empty(),
        Arrives::Cut(start) => got.is_empty() && cut.len() == 1 && cut[0].starts_with(start),
    };
    let second_should = if goes_on { Fate::Answered(200) } else { Fate::Ended };
    if as_should && is_second && (fate, second) == (row.fate, second_should) {
        return Ok(());
    }
    Err(format!("{}: {fate:?}, then {second:?}, arrived {got:?}, cut short {cut:?}; {:?}", row.name, row.fate))
}
