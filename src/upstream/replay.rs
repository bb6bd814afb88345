//! Bodies of requests that may be needed a second time: a server that speaks HTTP/2 can refuse what it has not looked at.

/// A body that can begin again, within reason.
pub trait ReplayBody {
    /// What is given from here on is kept.
    fn keep(&mut self);

    /// Is what it was when it was told to keep. `false`: it gave more than it keeps.
    fn replay(&mut self) -> bool;

    /// It will not be asked to begin again.
    fn forget(&mut self);
}
