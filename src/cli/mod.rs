//! The command line: commands, output, exit codes.
