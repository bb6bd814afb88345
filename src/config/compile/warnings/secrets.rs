//! Secrets that others can read or guess.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::config::compile::compiler::Compiler;
use crate::config::raw::Text;

impl Compiler {
    /// Warns of a token or key file that every user of the machine can read.
    pub(in crate::config::compile) fn warn_of_readers(&mut self, name: &Text, path: &Path, kind: &str) {
        let Ok(metadata) = std::fs::metadata(path) else { return };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & OTHERS_READ != 0 {
            let path = path.display();
            let message =
                format!("the {kind} file `{path}` can be read by every user of this machine (mode {mode:04o})");
            self.mistakes.warn(
                name.at,
                message,
                format!("make it readable by its owner and a group only: `chmod o= {path}`"),
            );
        }
    }

    pub(in crate::config::compile) fn warn_of_token(&mut self, name: &Text, path: &Path, token: &str) {
        let path = path.display();
        let help = format!("make a new one: `(umask 077; openssl rand -hex 32 > {path})`");
        if PLACEHOLDERS.iter().any(|placeholder| token.to_ascii_lowercase().contains(placeholder)) {
            let message = format!("the token in `{path}` is still the one of the examples: it is public");
            self.mistakes.warn(name.at, message, help);
        } else if token.trim().chars().count() < SHORTEST_TOKEN {
            let message =
                format!("the token in `{path}` is shorter than {SHORTEST_TOKEN} characters: it can be guessed");
            self.mistakes.warn(name.at, message, help);
        }
    }
}

const OTHERS_READ: u32 = 0o004;

/// As hexadecimal digits that is 64 bits.
const SHORTEST_TOKEN: usize = 16;

/// What the examples have in the place of a token.
const PLACEHOLDERS: [&str; 4] = ["change-me", "changeme", "change_me", "example"];
