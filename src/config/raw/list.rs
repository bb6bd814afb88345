//! The `lists` and `access` sections.

use ipnet::IpNet;

use super::Spanned;
use super::Text;
use super::forms::OneOrMany;
use super::limit::KeyPart;
use super::section;

section! {
    /// A named set: of client addresses, or of the values of a selector.
    List {
        /// Addresses and networks.
        addresses: OneOrMany<Spanned<IpNet>>,
        /// A file with one entry a line and `#` comments, read again when it changes.
        file: Text,
        /// The selector whose values the list holds, such as `header.x-api-key`. Left out: the client's address.
        of: KeyPart,
    }
}

section! {
    /// Lists that decide before any limit.
    Access {
        /// Members of these lists pass every limit. Wins over `deny`.
        allow: OneOrMany<Text>,
        /// Members of these lists get 403.
        deny: OneOrMany<Text>,
    }
}
