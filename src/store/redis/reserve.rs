//! All or none across slots: reserved in order, given back when a later one denies.
