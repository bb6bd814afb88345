//! The `lists` and `access` sections.

use ipnet::IpNet;

use super::forms::OneOrList;
use super::limit::KeyPart;
use super::section::section;
use super::value::Spanned;
use super::value::Text;

section! {
    /// A named set of client addresses, or of values of a selector.
    List {
        /// Addresses and networks that are on the list.
        addresses: OneOrList<Spanned<IpNet>>,
        /// A file with one entry on each line and `#` comments. The gateway reads it again when it changes.
        file: Text,
        /// The selector whose values the list holds, such as `header.x-api-key`. Default: the client's address.
        of: KeyPart,
    }
    later {
        "crowdsec" => "write the decisions to a file, and name it in `file`: it is read again when it changes",
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
