//! What is known of the client of a request whose route has `known_clients`.

use smallvec::SmallVec;

use super::Policy;
use super::batch::KnownClientKey;
use super::device;
use super::device::DeviceKeys;
use super::device::DeviceMatch;
use crate::key::Key;
use crate::key::KeyHasher;
use crate::key::Source;
use crate::key::extract;
use crate::key::undisputed;
use crate::route::KnownBy;
use crate::route::KnownClients;
use crate::route::RouteId;

/// What is known of the client of a request whose route has `known_clients`.
#[derive(Debug)]
pub(super) struct ClientMatch {
    /// What the device cookies of the request prove.
    pub(super) device: DeviceMatch,
    /// The keys under which a store may know the client. The batch takes them where a charge depends on it.
    pub(super) keys: SmallVec<[KnownClientKey; 1]>,
    /// The client that is known after a success, and the route whose `known_clients` says so.
    pub(super) remember: Option<(RouteId, KnownClientKey)>,
}

impl ClientMatch {
    /// `device_keys` verify device cookies. `None`: no device is known.
    pub(super) fn of(
        policy: &Policy,
        route: RouteId,
        source: &Source<'_>,
        device_keys: Option<DeviceKeys<'_>>,
        hasher: &KeyHasher,
    ) -> Self {
        let device = device_keys.map_or_else(DeviceMatch::default, |by| device::matching(policy, route, source, by));
        let source = &Source { device: device.id(), ..*source };
        let keys = known_client_keys(policy, route, source, hasher);
        let remember = client_to_remember(policy, route, source, &keys).map(|one| (route, one));
        Self { device, keys, remember }
    }
}

/// The keys under which a store may know the client: one for each name that an application may read in the request. Empty where the name is
/// missing, or where the gateway may not have seen all names.
fn known_client_keys(
    policy: &Policy,
    route: RouteId,
    source: &Source<'_>,
    hasher: &KeyHasher,
) -> SmallVec<[KnownClientKey; 1]> {
    let route = policy.routes.get(route);
    let Some(KnownClients { of, by: KnownBy::Address, prefix, .. }) = &route.known_clients else {
        return SmallVec::new();
    };
    let Ok(found) = extract::keys(of, source) else { return SmallVec::new() };
    if found.absent || found.keys.iter().any(|candidate| candidate.missing) {
        return SmallVec::new();
    }
    let client = hasher.item(&extract::client(*prefix, source));
    let subject = |name: &Key| {
        let mut key = Key::default();
        key.push(route.name.as_bytes());
        name.parts().for_each(|part| key.push(part));
        hasher.hash(KNOWN, &key)
    };
    found.keys.iter().map(|name| KnownClientKey { subject: subject(&name.key), client }).collect()
}

/// The client that is known after a success. `None` where the request has several names, because it is not certain
/// which one succeeds, or where the application may read another name.
fn client_to_remember(
    policy: &Policy,
    route: RouteId,
    source: &Source<'_>,
    known: &[KnownClientKey],
) -> Option<KnownClientKey> {
    let rule = policy.routes.get(route).known_clients.as_ref()?;
    let [one] = known else { return None };
    undisputed::names_one(&rule.of, source).then_some(*one)
}

/// No limit has a name like this: names have no space.
const KNOWN: &str = "known clients";
