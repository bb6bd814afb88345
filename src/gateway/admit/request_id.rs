//! The id of a request, in its log line, its deny response and the application's own log.

use std::fmt;

use crate::client::Identity;
use crate::digits::HEX_PAIRS;
use crate::head::Fields;
use crate::head::KnownName;

/// 32 hexadecimal digits, or the id from a trusted proxy: at most 64 safe characters.
///
/// Aligned, so that the check for UTF-8 goes a word at a time.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct RequestId {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

/// Room for every format that proxies write. A longer id is an attempt to fill logs.
const MAX_LENGTH: usize = 64;

impl RequestId {
    /// The id from a trusted proxy, else a fresh one: a client could make its requests look like another client's.
    pub fn of(identity: &Identity, fields: &Fields) -> Self {
        if identity.peer_is_trusted
            && let Some(given) = fields.get(KnownName::X_REQUEST_ID).and_then(Self::from_bytes)
        {
            return given;
        }
        Self::random()
    }

    pub fn random() -> Self {
        let mut bytes = [0; MAX_LENGTH];
        for (digits, byte) in bytes.chunks_exact_mut(2).zip(fastrand::u128(..).to_le_bytes()) {
            digits.copy_from_slice(&HEX_PAIRS[usize::from(byte)]);
        }
        Self { bytes, length: 32 }
    }

    /// `None` when it is empty, too long, or not safe in a log or a page.
    fn from_bytes(given: &[u8]) -> Option<Self> {
        let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:=+/@".contains(byte);
        if given.is_empty() || given.len() > MAX_LENGTH || !given.iter().all(is_safe) {
            return None;
        }
        let mut bytes = [0; MAX_LENGTH];
        bytes[..given.len()].copy_from_slice(given);
        Some(Self { bytes, length: u8::try_from(given.len()).ok()? })
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::client::ClientIp;

    fn id_from(peer_is_trusted: bool, given: &'static str) -> RequestId {
        let peer = ClientIp::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut fields = Fields::default();
        fields.append(KnownName::X_REQUEST_ID, given.as_bytes());
        RequestId::of(&Identity { peer, peer_is_trusted, client: peer }, &fields)
    }

    #[test]
    fn a_fresh_id_is_32_hexadecimal_digits() {
        let id = RequestId::random();
        assert_eq!(id.as_str().len(), 32);
        assert!(id.as_str().bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert_ne!(id.as_str(), RequestId::random().as_str());
    }

    #[test]
    fn a_trusted_proxy_names_the_request() {
        assert_eq!(id_from(true, "Root=1-67891233-abcdef").as_str(), "Root=1-67891233-abcdef");
    }

    #[test]
    fn an_untrusted_peer_does_not_name_the_request() {
        assert_eq!(id_from(false, "mine").as_str().len(), 32);
    }

    #[test]
    fn a_name_that_could_harm_a_log_is_replaced() {
        assert_eq!(id_from(true, "a b").as_str().len(), 32);
        assert_eq!(id_from(true, "\"x\"").as_str().len(), 32);
        assert_eq!(id_from(true, "").as_str().len(), 32);
    }

    proptest! {
        #[test]
        fn a_given_id_is_short_and_safe_or_none(given in prop::collection::vec(any::<u8>(), 0..70)) {
            if let Some(id) = RequestId::from_bytes(&given) {
                prop_assert_eq!(id.as_bytes(), &given[..]);
                prop_assert!(id.as_str().len() <= MAX_LENGTH && !id.as_str().contains(['"', '<', '\\', ' ']));
            }
        }
    }
}
