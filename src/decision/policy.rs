//! Everything compiled: what a configuration means, immutable, held by each request from its start to its end.

use crate::key::KeyHasher;
use crate::key::KeyPart;
use crate::limit::DenyResponse;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::list::List;
use crate::list::ListId;
use crate::route::RouteTable;
use crate::route::UpstreamId;

/// The rules in force.
#[derive(Clone, Debug)]
pub struct Policy {
    pub lists: Vec<PolicyList>,
    pub access: Access,
    /// Every limit of the configuration, each name once.
    pub limits: Vec<Limit>,
    /// Those that hold for every request.
    pub everywhere: Vec<LimitId>,
    pub routes: RouteTable,
    /// Where a request goes that takes no route.
    pub upstream: UpstreamId,
    pub deny_response: DenyResponse,
    pub hasher: KeyHasher,
}

/// A list, and what of a request is looked up in it.
#[derive(Clone, Debug)]
pub struct PolicyList {
    pub list: List,
    /// `None`: the client's address.
    pub of: Option<KeyPart>,
}

/// The lists that decide before any limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Access {
    pub allow: Vec<ListId>,
    pub deny: Vec<ListId>,
}
