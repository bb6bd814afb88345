//! Reads a snapshot on disk: the last record about each thing is what holds.

use std::collections::HashMap;

use super::content::SnapshotContent;
use super::file_header;
use super::frame::Part;
use super::frame::Parts;
use super::one_piece;
use super::record::Record;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::store::bans::BanId;
use crate::store::bans::saved::SavedBan;
use crate::store::sessions::known::KnownSession;

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) content: SnapshotContent,
    pub(super) sessions: Vec<KnownSession>,
    /// How many bytes at the end are no record: the process or the machine stopped while they were written.
    pub(super) torn: usize,
    /// How many bytes before that are no record, although they were once.
    pub(super) damaged: usize,
    /// The end is missing, and with it a part of the state at the time the file was begun.
    pub(super) is_cut_short: bool,
}

/// Why a file cannot be read at all.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("the snapshot is damaged")]
    Damaged,
    #[error("the snapshot is of version {0}, and this gateway reads versions up to {newest}", newest = file_header::VERSION)]
    Version(u32),
}

pub(super) fn replay(file: &[u8]) -> Result<Replayed, Unreadable> {
    match file_header::version(file).ok_or(Unreadable::Damaged)? {
        (one_piece::VERSION, _) => {
            let (content, sessions) = one_piece::decode(file).ok_or(Unreadable::Damaged)?;
            Ok(Replayed { content, sessions, ..Replayed::default() })
        }
        (file_header::VERSION, rest) => {
            let salt = file_header::read_salt(rest).ok_or(Unreadable::Damaged)?;
            Latest::default().read(Parts::new(salt, file, file_header::LENGTH)).ok_or(Unreadable::Damaged)
        }
        (other, _) => Err(Unreadable::Version(other)),
    }
}

/// The last record about each thing.
#[derive(Debug, Default)]
struct Latest {
    secret: Option<[u8; 16]>,
    seeds: Vec<(Timestamp, [u8; 32])>,
    bans: HashMap<BanId, SavedBan>,
    /// The clients of each subject, and the number of the record.
    known: HashMap<KeyHash, (usize, Vec<(u64, Timestamp)>)>,
    /// How many records of known clients there were.
    successes: usize,
    sessions: HashMap<KeyHash, KnownSession>,
    is_whole: bool,
}

impl Latest {
    /// `None`: without the secret, none of it is of any use.
    fn read(mut self, parts: Parts<'_>) -> Option<Replayed> {
        let (mut torn, mut damaged) = (0, 0);
        for part in parts {
            match part {
                Part::Frame(payload) => match Record::read_all(payload) {
                    Some(records) => records.into_iter().for_each(|record| self.apply(record)),
                    None => damaged += payload.len(),
                },
                Part::Damaged(bytes) => damaged += bytes,
                Part::Torn(bytes) => torn += bytes,
            }
        }
        let mut known: Vec<_> = self.known.into_iter().collect();
        known.sort_unstable_by_key(|(_, (number, _))| *number);
        let known = known.into_iter().map(|(subject, (_, clients))| (subject, clients));
        let content = SnapshotContent {
            secret: self.secret?,
            bans: self.bans.into_values().collect(),
            seeds: self.seeds,
            known: known.collect(),
        };
        let sessions = self.sessions.into_values().collect();
        Some(Replayed { content, sessions, torn, damaged, is_cut_short: !self.is_whole })
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Secret(secret) => self.secret = Some(secret),
            Record::Seeds(seeds) => self.seeds = seeds,
            Record::Ban(id, ban) => _ = self.bans.insert(id, ban),
            Record::NoBan(id) => _ = self.bans.remove(&id),
            Record::KnownClients(subject, clients) => {
                self.successes += 1;
                self.known.insert(subject, (self.successes, clients));
            }
            Record::Session(known) => _ = self.sessions.insert(known.session, known),
            Record::NoSession(session) => _ = self.sessions.remove(&session),
            Record::Whole => self.is_whole = true,
        }
    }
}
