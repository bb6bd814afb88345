//! Bodies of requests that may be sent a second time: a server that speaks HTTP/2 can refuse a request unprocessed.

/// A body that can be read again from a point on, if not too much of it was read since.
pub trait ReplayBody {
    /// From here on the body keeps what it gives.
    fn keep(&mut self);

    /// Goes back to where [`Self::keep`] was called. `false`: the body gave more than it keeps.
    fn replay(&mut self) -> bool;

    /// The body is not replayed, and keeps nothing.
    fn stop_keeping(&mut self);
}
