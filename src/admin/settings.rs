//! The settings of the admin listener.

use std::net::SocketAddr;

use super::Token;
use crate::limit::OnFailure;

/// The `admin` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AdminSettings {
    pub address: SocketAddr,
    /// `None`: programs of this machine may use the API.
    pub token: Option<Token>,
}

/// What a reload changes without a new listener.
#[derive(Clone, Debug)]
pub struct AdminRules {
    pub token: Option<Token>,
    /// What to do while Redis is down, for limits that do not say.
    pub on_failure: OnFailure,
}
