//! What this process does about resets, whichever gateway was asked for one.

use std::sync::Arc;

use super::denied_until::DeniedUntil;
use super::memory::MemoryStore;
use crate::key::KeyHash;
use crate::key::KeyHasher;

/// What is to be forgotten here when a key is reset.
///
/// A reset is told to all gateways as text: the hashes of the keys, 32 hexadecimal digits each, spaces between them.
#[derive(Clone, Debug)]
pub struct Resets {
    denied: Arc<DeniedUntil>,
    local: Arc<MemoryStore>,
}

impl Resets {
    pub fn new(denied: &Arc<DeniedUntil>, local: &Arc<MemoryStore>) -> Self {
        Self { denied: Arc::clone(denied), local: Arc::clone(local) }
    }

    /// These keys were reset. What is no key in the message says nothing.
    pub fn heard(&self, message: &[u8]) {
        for word in message.split(|byte| *byte == b' ') {
            let digits = std::str::from_utf8(word).ok().filter(|digits| digits.len() == DIGITS);
            if let Some(key) = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok()) {
                self.forget(KeyHash(key));
            }
        }
    }

    pub fn forget(&self, key: KeyHash) {
        let key = here(key);
        self.denied.forget(key);
        self.local.forget_now(key);
    }

    /// From now on every reset is heard of; earlier ones may not have been.
    pub fn listening(&self) {
        self.denied.listening();
    }

    /// A server may have lost what it held.
    pub fn emptied(&self) {
        self.denied.emptied();
    }

    /// Resets are not heard of any more.
    pub fn deaf(&self) {
        self.denied.deaf();
    }
}

/// The message that says that these keys were reset.
pub fn message(keys: &[KeyHash]) -> String {
    keys.iter().map(|key| format!("{:032x}", key.0)).collect::<Vec<_>>().join(" ")
}

/// A shared key as the tables of this process know it: under a hash that nobody outside can compute, so that no
/// stranger can choose keys that collide in them.
pub fn here(key: KeyHash) -> KeyHash {
    KeyHasher::of_process().again(key)
}

const DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::clock::Clock;
    use crate::clock::ManualClock;
    use crate::decision::Batch;
    use crate::decision::Charge;
    use crate::decision::batch::Force;
    use crate::decision::batch::Items;
    use crate::limit::Count;
    use crate::limit::OnFailure;
    use crate::limit::Rule;
    use crate::store::memory::Settings;

    #[test]
    fn what_one_gateway_says_another_forgets() {
        let local = Arc::new(MemoryStore::new(
            &Settings { max_keys: 100, snapshot: None },
            Clock::Manual(ManualClock::default()),
        ));
        let resets = Resets::new(&Arc::new(DeniedUntil::new(100)), &local);
        let rates = "1/day".parse().expect("a rate");
        let rule = Rule::Rates { algorithm: crate::limit::Algorithm::default(), rates, cost: NonZeroU32::MIN };
        let keys = [KeyHash(7), KeyHash(u128::MAX), KeyHash(0)];
        let charges = keys.iter().map(|key| Charge {
            limit: 0,
            key: here(*key),
            rule: &rule,
            count: Count::Requests,
            force: Force::Binding,
            on_failure: OnFailure::Local,
            items: Items::new(),
            unless_known: false,
        });
        local.decide_now(&Batch { charges: charges.collect(), ..Batch::default() });
        assert_eq!(local.len(), 3);
        resets.heard(message(&keys[1..]).as_bytes());
        assert_eq!(local.len(), 1);
        resets.heard(b"");
        resets.heard(b"7 \xff 0000000000000000000000000000000g");
        assert_eq!(local.len(), 1);
        resets.heard(message(&keys).as_bytes());
        assert_eq!(local.len(), 0);
    }
}
