//! Ten minutes of the history of one gateway, as it tells them to the others.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::report::HistoryReport;
use super::series::Step;
use crate::clock::Timestamp;

/// The counts of [`CHUNK_STEPS`] steps.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct HistoryChunk {
    /// The number of its first step since the Unix epoch.
    pub(super) first: u64,
    pub(super) routes: ChunkCounts,
    pub(super) limits: ChunkCounts,
}

/// By name and decision. Steps behind the last one that counted anything are left out.
pub(super) type ChunkCounts = BTreeMap<String, BTreeMap<String, Vec<u64>>>;

/// Ten minutes.
pub(super) const CHUNK_STEPS: u64 = 60;

impl HistoryChunk {
    /// The number of the chunk that this moment is in, since the Unix epoch.
    pub fn number(moment: Timestamp) -> u64 {
        Step::of(moment).0 / CHUNK_STEPS
    }

    /// The number of this chunk.
    pub fn own_number(&self) -> u64 {
        self.first / CHUNK_STEPS
    }

    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("names and counts can be written")
    }

    /// `None`: another version has written it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

impl HistoryReport {
    /// Adds what another gateway has counted in the time of this report.
    pub fn add(&mut self, chunk: &HistoryChunk) {
        let begin = Step::of(self.from).0;
        for (into, counts) in [(&mut self.routes, &chunk.routes), (&mut self.limits, &chunk.limits)] {
            for (name, decisions) in counts {
                for (decision, counts) in decisions {
                    let steps = (chunk.first..).zip(counts).filter_map(|(step, count)| {
                        let position = step.checked_sub(begin).filter(|position| *position < self.steps)?;
                        Some((usize::try_from(position).ok()?, *count))
                    });
                    let steps: Vec<_> = steps.filter(|(_, count)| *count > 0).collect();
                    if steps.is_empty() {
                        continue;
                    }
                    let zeros = || vec![0; usize::try_from(self.steps).unwrap_or_default()];
                    let sums = into.entry(name.clone()).or_default().entry(decision.clone()).or_insert_with(zeros);
                    for (position, count) in steps {
                        sums[position] += count;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_others_are_added_where_the_times_meet() {
        let counts = |counts: &[u64]| -> ChunkCounts {
            [("login".to_owned(), [("denied".to_owned(), counts.to_vec())].into())].into()
        };
        let chunk = HistoryChunk { first: 120, routes: counts(&[1, 0, 2, 3]), limits: ChunkCounts::new() };
        let chunk = HistoryChunk::from_bytes(&chunk.to_bytes()).unwrap();
        let mut report = HistoryReport::empty(Step(122).begins(), 3);
        report.add(&chunk);
        report.add(&chunk);
        assert_eq!(report.routes["login"]["denied"], [4, 6, 0]);
        let mut earlier = HistoryReport::empty(Step(100).begins(), 6);
        earlier.add(&chunk);
        assert!(earlier.routes.is_empty());
        assert_eq!(HistoryChunk::from_bytes(b"\xff\xff"), None);
    }
}
