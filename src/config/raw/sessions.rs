//! The `sessions` of a route, as they are written.

use super::forms::OneOrList;
use super::limit::KeyPart;
use super::section::section;
use super::value::Spanned;
use super::value::Text;
use crate::units::Span;

section! {
    /// Who is signed in. After a success the cookies and tokens of the answer are sessions of the account that the request
    /// named, and the selector `user` is that account on every route. A success that gives no such session, or whose
    /// request carried a session of another account, is a failure.
    Sessions {
        /// The selector of the user name, for instance `param.username`. A list for accounts of one host each:
        /// `[host, param.username]`.
        of: OneOrList<KeyPart>,
        /// Names of cookies that are sessions, or globs for them, such as `wordpress_logged_in_*`.
        cookies: OneOrList<Text>,
        /// Where tokens stand in the JSON body of a success: `json.access_token`. Requests carry them as `bearer`.
        tokens: OneOrList<Text>,
        /// How long a session is known after its last use: as long as the application accepts the longest of them.
        /// Default: 12h.
        r#for: Spanned<Span>,
        /// Whether a success gives the client a session that its request did not carry. Write `false` for an application
        /// that keeps the session's id over a login: then what the request carried is a session of the account, too.
        /// Default: true.
        fresh: Spanned<bool>,
    }
    required {
        of => "write the selector of the user name: `of: param.username`",
    }
}
