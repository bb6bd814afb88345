//! The WebSocket handshake of HTTP/1.1 (RFC 6455), made by the gateway for a client of HTTP/2, which has none (RFC
//! 8441).

use aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
use aws_lc_rs::digest::digest;
use http::HeaderMap;
use http::HeaderValue;
use http::header::SEC_WEBSOCKET_ACCEPT;
use http::header::SEC_WEBSOCKET_KEY;

use crate::base64;

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
    pub fn ask(&self, headers: &mut HeaderMap) {
        let key = HeaderValue::from_str(&self.key).expect("base64 is visible");
        headers.insert(SEC_WEBSOCKET_KEY, key);
    }

    /// Removes the application's answer to the key from its 101. Returns whether it is the right one.
    pub fn take_accept(&self, headers: &mut HeaderMap) -> bool {
        let is_one = headers.get_all(SEC_WEBSOCKET_ACCEPT).iter().count() == 1;
        let accept = headers.remove(SEC_WEBSOCKET_ACCEPT);
        is_one && accept.is_some_and(|accept| accept.as_bytes() == accept_for(&self.key).as_bytes())
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
        let right = HeaderValue::from_str(&accept_for(&handshake.key)).unwrap();
        let other = HeaderValue::from_str(&accept_for(&Handshake::random().key)).unwrap();
        for (answers, is_right) in
            [(vec![&right], true), (vec![], false), (vec![&other], false), (vec![&right, &other], false)]
        {
            let answers = answers.into_iter().map(|answer| (SEC_WEBSOCKET_ACCEPT, answer.clone()));
            let mut headers = HeaderMap::from_iter([]);
            headers.extend(answers.map(|(name, value)| (Some(name), value)));
            assert_eq!(handshake.take_accept(&mut headers), is_right);
            assert!(headers.is_empty());
        }
    }
}
