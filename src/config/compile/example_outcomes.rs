//! The outcomes that helps write as examples. None of them draws a warning.

/// How helps write a success: many applications redirect after a failure too, but not there.
pub(super) const SUCCESS: &str = "{status: 302, header: {location: \"/account*\"}}";

/// How helps write a failure.
pub(super) const FAILURE: &str = "{status: 401}";
