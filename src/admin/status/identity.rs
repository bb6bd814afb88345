//! Which gateway this is.

use std::sync::Arc;

use crate::clock::Timestamp;

/// Which process this is, among the gateways on one store.
#[derive(Clone, Debug)]
pub struct GatewayIdentity {
    /// The name of the machine and a random number: `web-1-3f2a90c4`.
    pub id: Arc<str>,
    /// When it started, by the wall clock.
    pub since: Timestamp,
}

impl GatewayIdentity {
    /// Of this process. `machine` is the name of the machine; what does not belong in a name is left out.
    pub fn new(machine: &str, since: Timestamp) -> Self {
        let is_of_name = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
        let machine: String = machine.chars().filter(is_of_name).take(MAX_MACHINE).collect();
        let machine = if machine.is_empty() { "gateway" } else { &machine };
        Self { id: format!("{machine}-{:08x}", fastrand::u32(..)).into(), since }
    }
}

/// Of the name of a machine, in characters.
const MAX_MACHINE: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_of_one_machine_have_two_ids() {
        let id = |machine: &str| GatewayIdentity::new(machine, Timestamp::EPOCH).id.to_string();
        assert!(id("web-1").starts_with("web-1-") && id("web-1") != id("web-1"));
        assert!(id("a/b\u{1b}").starts_with("ab-"));
        assert!(id("").starts_with("gateway-"));
    }
}
