//! The algorithms that count requests, and their options.

use std::num::NonZeroU32;

use serde::Deserialize;
use serde::Serialize;

use super::Rate;

/// How requests are counted against rates.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Algorithm {
    #[default]
    SlidingWindowLog,
    SlidingWindowCounter,
    /// `None`: buckets of one minute, or of a tenth of a window under ten minutes.
    BucketedWindow {
        buckets: Option<NonZeroU32>,
    },
    FixedWindow,
    /// `None`: the count of the rate.
    TokenBucket {
        burst: Option<NonZeroU32>,
    },
}

impl Algorithm {
    /// How many units of this rate may pass at once.
    pub fn capacity(self, rate: &Rate) -> NonZeroU32 {
        match self {
            Self::TokenBucket { burst: Some(burst) } => burst,
            _ => rate.count,
        }
    }
}
