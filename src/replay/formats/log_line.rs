//! A line of a log that was understood.

use crate::replay::LoggedRequest;

/// A line that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum LogLine {
    Request(LoggedRequest),
    /// It holds no request that rules could see: the gateway refuses what was sent, or the line is about something
    /// else.
    NoRequest,
    /// It describes the lines after it.
    Directive,
    /// A proxy has asked about descriptors. The log does not hold which.
    DescriptorCall,
}
