//! Values that were copied from an example and not replaced.

use ipnet::IpNet;

use crate::config::compile::compiler::Compiler;
use crate::config::raw::Text;
use crate::config::source::SourceRange;

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

const EXAMPLE_HOSTS: [&str; 5] = ["example.com", "example.net", "example.org", "example", "invalid"];

const EXAMPLE_NETWORKS: [&str; 5] = ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"];

const EXAMPLE_VALUE: &str = "example-";
