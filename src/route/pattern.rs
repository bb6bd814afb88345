//! Path patterns: exact, prefix, captured segments, regular expressions.
