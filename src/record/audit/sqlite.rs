//! An `SQLite` database of one table. Rows are never deleted: how long they are kept is the operator's decision.

use std::io;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Statement, params_from_iter};

use super::writer::AuditSink;
use crate::record::Event;
use crate::words::files;

#[derive(Debug)]
pub(super) struct AuditDatabase(Connection);

/// Columns are named as in the JSON. Times sort as text. `for` is in seconds.
const SCHEMA: &str = r#"
CREATE TABLE IF NOT EXISTS audit (
    id INTEGER PRIMARY KEY,
    "time" TEXT NOT NULL,
    event TEXT NOT NULL,
    "limit" TEXT,
    list TEXT,
    "key" TEXT,
    client TEXT,
    until TEXT,
    "for" REAL,
    route TEXT,
    request_id TEXT,
    decision TEXT,
    address TEXT,
    ban TEXT,
    reason TEXT,
    account TEXT,
    failures INTEGER,
    clients INTEGER
);
CREATE INDEX IF NOT EXISTS audit_time ON audit ("time");
CREATE INDEX IF NOT EXISTS audit_client ON audit (client, "time");
CREATE INDEX IF NOT EXISTS audit_limit ON audit ("limit", "time");
CREATE INDEX IF NOT EXISTS audit_request ON audit (request_id);
"#;

/// In the order of [`INSERT`].
const COLUMNS: [&str; 17] = [
    "time",
    "event",
    "limit",
    "list",
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
    "account",
    "failures",
    "clients",
];

const INSERT: &str = r#"
INSERT INTO audit
    ("time", event, "limit", list, "key", client, until, "for", route, request_id, decision, address, ban, reason,
     account, failures, clients)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"#;

/// How a database begins. An empty file becomes one.
const HEADER: &[u8] = b"SQLite format 3\0";

/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

impl AuditDatabase {
    /// Whether the file at a path, if there is one, begins as a database does. Opening one may change it.
    pub(super) fn check(path: &Path) -> io::Result<()> {
        let mut begins = Vec::new();
        match files::open(path) {
            Ok(file) => file.take(HEADER.len() as u64).read_to_end(&mut begins)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if begins.is_empty() || begins == HEADER { Ok(()) } else { Err(io::Error::other("file is not a database")) }
    }

    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Readers do not wait for the writer. A crash of the machine may lose the last rows, but never the database.
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.execute_batch(SCHEMA)?;
        add_missing_columns(&connection)?;
        Ok(Self(connection))
    }
}

/// The columns that a database of an earlier version lacks, and the type of each.
const ADDED: [(&str, &str); 3] = [("account", "TEXT"), ("failures", "INTEGER"), ("clients", "INTEGER")];

fn add_missing_columns(connection: &Connection) -> rusqlite::Result<()> {
    for (name, kind) in ADDED {
        if !connection.column_exists(None, "audit", name)? {
            connection.execute_batch(&format!("ALTER TABLE audit ADD COLUMN {name} {kind}"))?;
        }
    }
    Ok(())
}

impl AuditSink for AuditDatabase {
    fn write(&mut self, events: &[Arc<Event>]) -> io::Result<()> {
        insert_all(&mut self.0, events).map_err(io::Error::other)
    }
}

fn insert_all(connection: &mut Connection, events: &[Arc<Event>]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(INSERT)?;
        for event in events {
            insert_event(&mut insert, event)?;
        }
    }
    transaction.commit()
}

fn insert_event(insert: &mut Statement<'_>, event: &Event) -> rusqlite::Result<usize> {
    let texts = event.texts();
    let column = |name: &&str| texts.iter().find(|(known, _)| known == name).map(|(_, text)| &**text);
    insert.execute(params_from_iter(COLUMNS.iter().map(column)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::attacks::{Account, AccountId};
    use crate::record::event::{EventKind, FailedAccount};

    #[test]
    fn a_database_of_an_earlier_version_gets_the_columns_that_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.db");
        let before = SCHEMA
            .replace("reason TEXT,\n    account TEXT,\n    failures INTEGER,\n    clients INTEGER\n", "reason TEXT\n");
        assert!(!before.contains("account"));
        let old = Connection::open(&path).unwrap();
        old.execute_batch(&before).unwrap();
        old.execute_batch("INSERT INTO audit (\"time\", event) VALUES ('2026-01-01T00:00:00.000Z', 'reload')").unwrap();
        drop(old);
        // It is opened at every start.
        drop(AuditDatabase::open(&path).unwrap());
        let mut database = AuditDatabase::open(&path).unwrap();
        let account = Account { id: AccountId(1), name: "alice".into(), masked: "a***".into() };
        let account = Some(FailedAccount { account, failures: 7, clients: 3 });
        database.write(&[Arc::new(Event { account, ..Event::new(EventKind::SignedInAfterFailures) })]).unwrap();
        let rows = "SELECT concat_ws(' ', event, account, failures, clients) FROM audit ORDER BY id";
        let mut rows = database.0.prepare(rows).unwrap();
        let rows: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows, ["reload", "signed_in_after_failures a*** 7 3"]);
    }
}
