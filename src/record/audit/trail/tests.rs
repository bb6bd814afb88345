//! Real files and databases.

use std::fs;

use super::*;
use crate::record::audit::writer::AuditSink;
use crate::record::event::EventKind;

fn open(settings: &AuditSettings, previous: Option<&AuditTrail>, metrics: &Metrics) -> Result<AuditTrail, AuditError> {
    let (tasks, closing) = (&TaskTracker::new(), &CancellationToken::new());
    AuditTrail::open(settings, previous, AuditContext { metrics, redis: None, tasks, closing })
}

fn denial_of(name: &str) -> Arc<Event> {
    let key = vec![("param.username".to_owned(), format!("{name}***"))];
    Arc::new(Event { limit: Some("login".into()), key: Some(key), ..Event::new(EventKind::Denial) })
}

async fn close(trail: AuditTrail) {
    let writers = trail.finished();
    drop(trail);
    for writer in writers {
        writer.wait().await;
    }
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_file_holds_a_line_for_each_event_when_its_trail_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    fs::write(&path, "{\"event\":\"before\"}\n").unwrap();
    let settings = AuditSettings { file: Some(path.clone()), ..AuditSettings::default() };
    let trail = open(&settings, None, &Metrics::new()).unwrap();
    for _ in 0..3000 {
        trail.append(&denial_of("a"));
    }
    close(trail).await;
    let lines = lines(&path);
    assert_eq!(lines.len(), 3001);
    assert_eq!((&lines[0]["event"], &lines[3000]["key"]["param.username"]), (&"before".into(), &"a***".into()));
}

#[tokio::test]
async fn a_new_file_is_begun_when_the_old_one_was_rotated_away() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rotated) = (folder.path().join("audit.jsonl"), folder.path().join("audit.jsonl.1"));
    let mut file = AuditFile::open(&path).unwrap();
    AuditSink::write(&mut file, &[denial_of("a")]).unwrap();
    fs::rename(&path, &rotated).unwrap();
    AuditSink::write(&mut file, &[denial_of("b")]).unwrap();
    assert_eq!(lines(&rotated)[0]["key"]["param.username"], "a***");
    assert_eq!(lines(&path)[0]["key"]["param.username"], "b***");
}

#[tokio::test]
async fn a_sink_that_did_not_change_is_kept_and_one_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let metrics = Metrics::new();
    let settings = AuditSettings { file: Some(path.clone()), ..AuditSettings::default() };
    let first = open(&settings, None, &metrics).unwrap();
    let second = open(&settings, Some(&first), &metrics).unwrap();
    assert!(Arc::ptr_eq(first.file.as_ref().unwrap(), second.file.as_ref().unwrap()));
    let nowhere = folder.path().join("absent").join("audit.jsonl");
    let settings = AuditSettings { file: Some(nowhere.clone()), ..settings };
    let error = open(&settings, Some(&second), &metrics).unwrap_err();
    assert!(error.to_string().contains(&nowhere.display().to_string()), "{error}");
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_database_holds_a_row_for_each_event_and_those_from_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.db");
    let settings = AuditSettings { sqlite: Some(path.clone()), ..AuditSettings::default() };
    for name in ["a", "b"] {
        let trail = open(&settings, None, &Metrics::new()).unwrap();
        for _ in 0..1500 {
            trail.append(&denial_of(name));
        }
        close(trail).await;
    }
    let database = rusqlite::Connection::open(&path).unwrap();
    let count: i64 = database
        .query_row(
            r#"SELECT count(*) FROM audit WHERE event = 'denial' AND "limit" = 'login' AND "key" LIKE '%"b***"%'"#,
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(count, 1500);
    let all: i64 = database.query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap();
    assert_eq!(all, 3000);
}
