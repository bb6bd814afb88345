//! The `lists` and `access` sections.

use ipnet::IpNet;

use super::forms::OneOrList;
use super::limit::KeyPart;
use super::section::section;
use super::value::Spanned;
use super::value::Text;
use crate::units::Span;

section! {
    /// A named set of client addresses, or of values of a selector.
    List {
        /// Addresses and networks that are on the list.
        addresses: OneOrList<Spanned<IpNet>>,
        /// A file with one entry on each line and `#` comments. The gateway reads it again when it changes.
        file: Text,
        /// A `CrowdSec` engine that decides which addresses are on the list.
        crowdsec: FollowedLapi,
        /// The selector whose values the list holds, such as `header.x-api-key`. Default: the client's address.
        of: KeyPart,
    }
}

section! {
    /// A `CrowdSec` engine whose decisions a list follows.
    FollowedLapi {
        /// The URL of its Local API.
        url: Text,
        /// A file with the key of a bouncer, one line. `cscli bouncers add` makes one; each gateway needs its own.
        key_file: Text,
        /// How often the engine is asked for what has changed. Default: 10s.
        every: Spanned<Span>,
        /// A PEM file with the certificates of the authorities that the API is verified by. Default: the system's.
        ca: Text,
    }
    required {
        url => "write where the Local API listens: `url: http://127.0.0.1:8080`",
        key_file => "make a key with `cscli bouncers add portcullis`, and write `key_file:` with a file that holds it",
    }
}

section! {
    /// Lists that are looked at before any limit.
    Access {
        /// Clients on these lists pass every limit and ban. `allow` wins over `deny`.
        allow: OneOrList<Text>,
        /// Clients on these lists get 403.
        deny: OneOrList<Text>,
    }
}
