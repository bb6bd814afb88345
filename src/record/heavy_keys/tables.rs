//! The tables of all limits, by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::KeyRecord;
use super::KeyTable;
use super::MinuteRecord;
use crate::clock::Timestamp;

/// Lives as long as the process: a limit that keeps its name in a reload keeps its table.
#[derive(Debug, Default)]
pub struct KeyTables {
    clients: Arc<KeyTable>,
    limits: Mutex<BTreeMap<Arc<str>, Arc<KeyTable>>>,
}

impl KeyTables {
    /// The clients, whatever denied them.
    pub fn clients(&self) -> &Arc<KeyTable> {
        &self.clients
    }

    /// The table of a limit; it is made when it is asked for first.
    pub fn limit(&self, name: &Arc<str>) -> Arc<KeyTable> {
        Arc::clone(self.limits.lock().entry(Arc::clone(name)).or_default())
    }

    /// What was counted in one minute, for other gateways.
    pub fn minute(&self, minute: u64) -> MinuteRecord {
        let tables: Vec<_> =
            self.limits.lock().iter().map(|(name, table)| (name.to_string(), Arc::clone(table))).collect();
        let limits = tables.into_iter().map(|(name, table)| (name, KeyRecord::heaviest(table.minute(minute))));
        MinuteRecord {
            clients: KeyRecord::heaviest(self.clients.minute(minute)),
            limits: limits.filter(|(_, keys)| !keys.is_empty()).collect(),
        }
    }

    /// To be called once a second.
    pub fn finish_minutes(&self, now: Timestamp) {
        self.clients.finish_minutes(now);
        let tables: Vec<_> = self.limits.lock().values().map(Arc::clone).collect();
        for table in tables {
            table.finish_minutes(now);
        }
        // No configuration has these limits any more.
        self.limits.lock().retain(|_, table| Arc::strong_count(table) > 1 || !table.is_empty());
    }
}
