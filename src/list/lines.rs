//! The format of list files: one entry a line, `#` comments.
