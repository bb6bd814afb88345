//! What the lists that follow a source hold now.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::client::ClientIp;
use crate::client::Reputation;
use crate::list::AddressSet;

/// The members of one list, replaced as a whole whenever its source says something else.
pub type LiveAddresses = Arc<ArcSwap<FollowedAddresses>>;

/// The addresses that a source has decided about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FollowedAddresses {
    pub banned: AddressSet,
    /// To be let in only after a challenge.
    pub challenged: AddressSet,
}

/// The lists of a configuration that follow a source, by their number.
#[derive(Clone, Debug, Default)]
pub struct FollowedLists(Vec<LiveAddresses>);

impl FollowedLists {
    /// What the lists say of a client at this moment.
    pub fn reputation(&self, client: ClientIp) -> Reputation {
        let mut reputation = Reputation::default();
        for (number, list) in (0..).zip(&self.0) {
            let addresses = list.load();
            if addresses.banned.contains(client) {
                reputation = reputation.banned_by(number);
            }
            if addresses.challenged.contains(client) {
                reputation = reputation.challenged_by(number);
            }
        }
        reputation
    }
}

impl FromIterator<LiveAddresses> for FollowedLists {
    fn from_iter<I: IntoIterator<Item = LiveAddresses>>(lists: I) -> Self {
        Self(lists.into_iter().collect())
    }
}
