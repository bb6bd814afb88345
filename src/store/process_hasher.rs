//! The hasher of the tables that only this process has.

use std::sync::LazyLock;

use super::random::random_bytes;
use crate::key::KeyHasher;

/// The same each time, so that counters in memory outlive a reload. No client can compute its hashes.
pub fn process_hasher() -> &'static KeyHasher {
    static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::new(random_bytes()));
    &HASHER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn a_reload_hashes_as_before_and_debug_output_shows_no_secret() {
        let mut key = Key::default();
        key.push(b"alice");
        let hash = || process_hasher().hash("login", &key);
        assert_eq!(hash(), hash());
        assert_ne!(hash(), KeyHasher::new([0; 16]).hash("login", &key));
        assert_eq!(format!("{:?}", process_hasher()), "KeyHasher(***)");
    }
}
