//! Secrets that others can read or guess.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ipnet::IpNet;

use crate::config::compile::document::Compiler;
use crate::config::raw;
use crate::config::raw::Text;
use crate::config::raw::route::Match;
use crate::config::source::SourceRange;

const OTHERS_READ: u32 = 0o004;

/// As hexadecimal digits that is 64 bits.
const SHORTEST_TOKEN: usize = 16;

/// The placeholders for a token in the examples.
const PLACEHOLDERS: [&str; 4] = ["change-me", "changeme", "change_me", "example"];

// Values that were copied from an example and not replaced.

const EXAMPLE_HOSTS: [&str; 5] = ["example.com", "example.net", "example.org", "example", "invalid"];

const EXAMPLE_NETWORKS: [&str; 5] = ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"];

const EXAMPLE_VALUE: &str = "example-";

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

impl Compiler {
    pub(in crate::config::compile) fn warn_of_example_webhook(&mut self, text: &Text, host: &str) {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_below = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if EXAMPLE_HOSTS.into_iter().any(is_below) {
            let message = format!("this webhook is still the one of the examples: messages to `{host}` reach nobody");
            self.mistakes.warn(
                text.at,
                message,
                "write your own, or take it from the environment: `webhook: ${OPS_WEBHOOK}`",
            );
        }
    }

    /// No client has an address that is reserved for documentation (RFC 5737, 3849, 9637).
    pub(in crate::config::compile) fn warn_of_example_addresses(&mut self, at: SourceRange, networks: &[IpNet]) {
        let ranges = || EXAMPLE_NETWORKS.iter().filter_map(|range| range.parse::<IpNet>().ok());
        if !networks.is_empty() && networks.iter().all(|network| ranges().any(|range| range.contains(network))) {
            self.mistakes.warn(
                at,
                "this list is still the one of the examples: its addresses are reserved for documentation, no client has one",
                "write your own networks, or remove the list",
            );
        }
    }

    pub(in crate::config::compile) fn warn_of_example_values<'v>(
        &mut self,
        at: SourceRange,
        mut values: impl Iterator<Item = &'v str>,
    ) {
        if values.any(|value| value.starts_with(EXAMPLE_VALUE)) {
            self.mistakes.warn(
                at,
                "this list is still the one of the examples: its values are public",
                "write values of your own, for example from `openssl rand -hex 32`",
            );
        }
    }
}

impl Compiler {
    /// A glob in a name is a mistake. These texts may be meant literally, so they get a warning.
    pub(super) fn warn_of_globs(&mut self, route: &raw::route::Route) {
        if let Some(Match::Long(conditions)) = route.r#match.get()
            && let Some(Text { value, at }) = conditions.path_regex.get()
            && let Some(path) = value.strip_suffix("/*")
        {
            let message = format!("`{value}` is a regular expression, in which `/*` matches any number of slashes");
            let path = path.trim_start_matches('^');
            self.mistakes.warn(*at, message, format!("to match everything below, write `path: {path}/*`"));
        }
        let Some(outcome) = route.outcome.get() else { return };
        for side in [&outcome.success, &outcome.failure].into_iter().filter_map(|side| side.get()) {
            let values = side.json.get().map(|values| &values.0.entries[..]).unwrap_or_default();
            let texts = values.iter().map(|(_, value)| value).chain(side.body.get());
            for Text { value, at } in texts.filter(|text| is_glob(&text.value)) {
                let message = format!("`{value}` looks like a glob, and is compared literally");
                self.mistakes.warn(
                    *at,
                    message,
                    "write the literal text; a `body` may be a regular expression: `/.../`",
                );
            }
        }
    }
}

// Texts that look like globs where no glob is allowed.

fn is_glob(text: &str) -> bool {
    text.len() > 1 && (text.starts_with('*') || text.ends_with('*'))
}
