//! The stories that this gateway has told to the others.

use std::collections::VecDeque;

use super::kinds::STORIES;
use crate::record::kept_requests::KeptRequests;
use crate::record::kept_requests::RequestStory;
use crate::record::kept_requests::Viewer;
use crate::store::SharedRecords;
use crate::store::redis::RecordsUnavailable;

/// The requests whose stories are in Redis, the oldest first.
#[derive(Debug, Default)]
pub(in crate::admin) struct ToldStories {
    ids: VecDeque<Box<str>>,
    /// How many requests had been kept when the last of them was told.
    seen: u64,
}

impl ToldStories {
    /// Writes the newest requests that were kept since, [`MOST_AT_ONCE`] at most, and removes the oldest where there are
    /// too many.
    pub(super) async fn tell(
        &mut self,
        kept: &KeptRequests,
        records: &SharedRecords,
    ) -> Result<(), RecordsUnavailable> {
        for (number, request) in kept.since(self.seen, MOST_AT_ONCE) {
            let story = RequestStory::of(&request, Viewer::Others);
            records.put(STORIES, &request.id, &story.to_bytes()).await?;
            self.seen = number + 1;
            self.ids.push_back(request.id.clone());
            if self.ids.len() > MOST_KEPT
                && let Some(oldest) = self.ids.pop_front()
            {
                records.remove(STORIES, &oldest).await?;
            }
        }
        Ok(())
    }
}

/// A flood of denials here is no flood of writes there.
const MOST_AT_ONCE: usize = 2000;

/// How many stories of one gateway are in Redis at a time.
const MOST_KEPT: usize = 10_000;
