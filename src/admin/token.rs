//! The token of the API.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::Hasher128;
use siphasher::sip128::SipHasher24;

/// Only a hash of it is kept, keyed with a secret of this process. So comparing two tokens takes
/// the same time whatever they are, and the token cannot be printed.
#[derive(Clone, Eq, PartialEq)]
pub struct Token {
    secret: [u8; 16],
    hash: u128,
}

impl Token {
    /// Trims white space. `None`: nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        static SECRET: std::sync::OnceLock<[u8; 16]> = std::sync::OnceLock::new();
        let secret = *SECRET.get_or_init(|| {
            let mut secret = [0; 16];
            getrandom::fill(&mut secret).expect("the system has random bytes");
            secret
        });
        let text = text.trim();
        (!text.is_empty()).then(|| Self { secret, hash: hash(&secret, text.as_bytes()) })
    }

    pub(super) fn matches(&self, presented: &[u8]) -> bool {
        hash(&self.secret, presented) == self.hash
    }
}

fn hash(secret: &[u8; 16], text: &[u8]) -> u128 {
    let mut hasher = SipHasher24::new_with_key(secret);
    hasher.write(text);
    hasher.finish128().as_u128()
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_compared_whole_and_never_shown() {
        let token = Token::new(" s3cret\n").unwrap();
        assert!(token.matches(b"s3cret"));
        assert!(!token.matches(b"s3cre") && !token.matches(b"s3crets") && !token.matches(b""));
        assert_eq!(token, Token::new("s3cret").unwrap());
        assert_ne!(token, Token::new("s3cret2").unwrap());
        assert_eq!(Token::new(" \n"), None);
        assert_eq!(format!("{token:?}"), "Token(***)");
    }
}
