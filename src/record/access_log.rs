//! A line for each request.
