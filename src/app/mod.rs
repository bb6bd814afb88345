//! Settings become running parts; reloads, signals and draining.
