//! The WebSocket handshake of HTTP/1.1 (RFC 6455), made by the gateway for a client of HTTP/2, which has none (RFC
//! 8441).

use aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
use aws_lc_rs::digest::digest;

use crate::base64;
use crate::head::Fields;
use crate::head::KnownName;

/// The key of a handshake. The application proves with its answer that it understands WebSocket.
#[derive(Debug)]
pub struct Handshake {
    key: String,
}

impl Handshake {
    /// A handshake with a random key.
    pub fn random() -> Self {
        let mut key = [0; 16];
        getrandom::fill(&mut key).expect("the system has random bytes");
        Self { key: base64::encode(&key) }
    }

    /// Writes the key into a request, in place of a key that the client may have sent.
    pub fn ask(&self, fields: &mut Fields) {
        fields.insert(KnownName::SEC_WEBSOCKET_KEY, self.key.as_bytes());
    }

    /// Removes the application's answer to the key from its 101. Returns whether it is the right one.
    pub fn take_accept(&self, fields: &mut Fields) -> bool {
        let accept = fields.single(KnownName::SEC_WEBSOCKET_ACCEPT);
        let is_right = accept.is_some_and(|accept| accept == accept_for(&self.key).as_bytes());
        fields.remove(KnownName::SEC_WEBSOCKET_ACCEPT);
        is_right
    }
}

fn accept_for(key: &str) -> String {
    let asked = [key, SUFFIX].concat();
    base64::encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, asked.as_bytes()).as_ref())
}

/// RFC 6455, section 1.3.
const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_that_of_the_rfc() {
        assert_eq!(accept_for("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn only_a_single_right_answer_is_accepted() {
        let handshake = Handshake::random();
        let right = accept_for(&handshake.key);
        let other = accept_for(&Handshake::random().key);
        for (answers, is_right) in
            [(vec![&right], true), (vec![], false), (vec![&other], false), (vec![&right, &other], false)]
        {
            let answers = answers.into_iter().map(|answer| (KnownName::SEC_WEBSOCKET_ACCEPT, answer));
            let mut fields: Fields = answers.collect();
            assert_eq!(handshake.take_accept(&mut fields), is_right);
            assert!(fields.is_empty());
        }
    }
}
