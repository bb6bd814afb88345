//! What a line needs besides the request record.

use crate::record::RequestRecord;
use crate::record::metrics::LimitMetrics;

/// Names that a record holds only as positions, and the parts that only some configurations log.
#[derive(Clone, Copy, Debug)]
pub(in crate::record) struct LineContext<'a> {
    pub(in crate::record) route: Option<&'a str>,
    pub(in crate::record) upstream: Option<&'a str>,
    /// `None`: lines have no query, or the request has none.
    pub(in crate::record) query: Option<&'a str>,
    /// By `LimitId`.
    pub(in crate::record) limits: &'a [LimitMetrics],
}

impl<'a> LineContext<'a> {
    /// The names of the shadow limits that would have denied the request.
    pub(super) fn shadow_limits(&self, request: &RequestRecord<'a>) -> impl Iterator<Item = &'a str> {
        let limits = self.limits;
        let denied = request.limits.iter().filter(|report| report.shadow && report.applied.is_some());
        denied.map(move |report| &*limits[usize::from(report.limit.0)].name)
    }
}
