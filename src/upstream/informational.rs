//! Informational answers (1xx), which come ahead of the answer.

use crate::head::ResponseHead;

/// Called with each informational answer.
pub(super) type OnInformational<'h> = &'h mut (dyn FnMut(ResponseHead) + Send);

/// Informational answers to one request that are passed on: no client needs more. Further ones are dropped.
pub(super) const MAX_PASSED_ON: u32 = 100;

/// Informational answers to one request. An application that sends more has no answer.
pub(super) const MAX_INFORMATIONAL: u32 = 10_000;
