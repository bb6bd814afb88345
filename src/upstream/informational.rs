//! Informational answers (1xx), which come ahead of the answer.

use crate::head::ResponseHead;

/// Called with each informational answer.
pub(super) type OnInformational<'h> = &'h mut (dyn FnMut(ResponseHead) + Send);

/// Informational answers to one request. No application sends more.
pub(super) const MAX_INFORMATIONAL: u32 = 100;
