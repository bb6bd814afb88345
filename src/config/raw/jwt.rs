//! The `jwt` section.

use super::forms::OneOrList;
use super::section::section;
use super::value::Spanned;
use super::value::Text;
use crate::units::Span;

section! {
    /// How tokens (JWT) are verified, so that limits can count by what they claim: `jwt.sub`. It authenticates nobody: the
    /// application still does.
    Jwt {
        /// A file with the public keys of the issuer, a JWK set. The gateway reads it again when it changes.
        jwks_file: Text,
        /// Instead of a file: the URL of the issuer's JWK set, https, or http on this machine. Fetched at the start, every
        /// hour, and when a token names a key that is not known. What is known stays while it cannot be fetched.
        jwks_url: Text,
        /// A PEM file with the certificates of the authorities that `jwks_url` is verified by. Default: the system's.
        ca: Text,
        /// What `iss` of a token must be; of several one. Default: anything.
        issuer: OneOrList<Text>,
        /// What `aud` of a token must name; of several one. Default: anything.
        audience: OneOrList<Text>,
        /// Where requests carry their token: `bearer` (default), `cookie.NAME` or `header.NAME`.
        from: Text,
        /// By how much the clock of the issuer may differ from that of this machine. Default: 30s.
        leeway: Spanned<Span>,
    }
}
