//! The `lists` and `access` sections.

use ipnet::IpNet;

use super::Spanned;
use super::Text;
use super::forms::OneOrMany;
use super::limit::KeyPart;
use super::section;

section! {
    /// A named set of client addresses, or of values of a selector.
    List {
        /// Addresses and networks that are on the list.
        addresses: OneOrMany<Spanned<IpNet>>,
        /// A file with one entry on each line and `#` comments. The gateway reads it again when it changes.
        file: Text,
        /// The selector whose values the list holds, such as `header.x-api-key`. Default: the client's address.
        of: KeyPart,
    }
}

section! {
    /// Lists that are looked at before any limit.
    Access {
        /// Clients on these lists pass every limit and ban. `allow` wins over `deny`.
        allow: OneOrMany<Text>,
        /// Clients on these lists get 403.
        deny: OneOrMany<Text>,
    }
}
