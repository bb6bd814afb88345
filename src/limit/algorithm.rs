//! Which algorithm holds a rate, and what each one is told.

use std::num::NonZeroU32;

use serde::Deserialize;
use serde::Serialize;

/// How requests are counted against rates.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Algorithm {
    #[default]
    SlidingWindowLog,
    SlidingWindowCounter,
    /// `None`: whole minutes, or a tenth of the window under ten minutes.
    BucketedWindow {
        buckets: Option<NonZeroU32>,
    },
    FixedWindow,
    /// `None`: as many at once as the rate's count.
    TokenBucket {
        burst: Option<NonZeroU32>,
    },
}
