//! Random bytes of the operating system.

pub(super) fn random_bytes<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}
