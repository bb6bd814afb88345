//! Who asks, as far as it is known for certain.

use crate::jwt::RequestClaims;
use crate::request::NotUnderstood;

/// What sessions and verified tokens prove of a request. Nothing, where neither is configured.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The marks of the accounts whose sessions the request carries, each once: hexadecimal digits.
    pub users: &'a [Box<str>],
    /// Why the request may carry other sessions, too.
    pub unread_users: Option<NotUnderstood>,
    /// What the tokens claim that the request carries, where they verify.
    pub claims: &'a RequestClaims,
}

impl Default for Identity<'_> {
    fn default() -> Self {
        Self { users: &[], unread_users: None, claims: RequestClaims::NONE }
    }
}
