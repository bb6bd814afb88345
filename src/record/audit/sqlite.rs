//! A database of one table. Rows are never deleted: how long they are kept is for others to say.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::Statement;
use rusqlite::params_from_iter;

use super::clerk::Book;
use crate::record::event::Event;

#[derive(Debug)]
pub(super) struct Database(Connection);

/// Named as in the JSON. Times sort as text; `for` is in seconds.
const SCHEMA: &str = r#"
CREATE TABLE IF NOT EXISTS audit (
    id INTEGER PRIMARY KEY,
    "time" TEXT NOT NULL,
    event TEXT NOT NULL,
    "limit" TEXT,
    "key" TEXT,
    client TEXT,
    until TEXT,
    "for" REAL,
    route TEXT,
    request_id TEXT,
    decision TEXT,
    address TEXT,
    ban TEXT,
    reason TEXT
);
CREATE INDEX IF NOT EXISTS audit_time ON audit ("time");
CREATE INDEX IF NOT EXISTS audit_client ON audit (client, "time");
CREATE INDEX IF NOT EXISTS audit_limit ON audit ("limit", "time");
CREATE INDEX IF NOT EXISTS audit_request ON audit (request_id);
"#;

/// In the order of the statement.
const COLUMNS: [&str; 13] = [
    "time",
    "event",
    "limit",
    "key",
    "client",
    "until",
    "for",
    "route",
    "request_id",
    "decision",
    "address",
    "ban",
    "reason",
];

const INSERT: &str = r#"
INSERT INTO audit
    ("time", event, "limit", "key", client, until, "for", route, request_id, decision, address, ban, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"#;

/// How long somebody else may be writing.
const BUSY: Duration = Duration::from_secs(5);

impl Database {
    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        // Whoever reads does not wait for who writes. A crash of the machine may lose the last rows, never the database.
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self(connection))
    }
}

impl Book for Database {
    fn write(&mut self, entries: &[Arc<Event>]) -> io::Result<()> {
        insert(&mut self.0, entries).map_err(io::Error::other)
    }
}

fn insert(connection: &mut Connection, entries: &[Arc<Event>]) -> rusqlite::Result<()> {
    let together = connection.transaction()?;
    {
        let mut row = together.prepare(INSERT)?;
        for event in entries {
            fill(&mut row, event)?;
        }
    }
    together.commit()
}

fn fill(row: &mut Statement<'_>, event: &Event) -> rusqlite::Result<usize> {
    let texts = event.texts();
    let column = |name: &&str| texts.iter().find(|(known, _)| known == name).map(|(_, text)| &**text);
    row.execute(params_from_iter(COLUMNS.iter().map(column)))
}
