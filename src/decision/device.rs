//! Clients that are known by a device cookie. The cookie proves it, without a store.

use std::fmt;

use smallvec::SmallVec;

use super::Policy;
use crate::client::DeviceId;
use crate::client::device::DeviceCookies;
use crate::client::device::DeviceOwner;
use crate::clock::Timestamp;
use crate::key::Key;
use crate::key::Source;
use crate::key::extract;
use crate::key::undisputed;
use crate::route::KnownBy;
use crate::route::KnownClients;
use crate::route::Route;
use crate::route::RouteId;
use crate::signing::KeyRing;

/// The keys that genuine device cookies are signed with.
#[derive(Clone, Copy, Debug)]
pub struct DeviceKeys<'a> {
    pub ring: &'a KeyRing,
    pub now: Timestamp,
}

/// A client that gets a device cookie when the outcome is a success.
#[derive(Clone)]
pub struct DeviceEnrollment {
    /// The route whose `known_clients` sets how long the cookie is valid.
    pub route: RouteId,
    /// The user name in the request, in the spelling in which it is compared.
    pub name: Box<str>,
    /// The device, if it was known before.
    pub device: Option<DeviceId>,
}

/// What the device cookies of a request prove.
#[derive(Debug, Default)]
pub(super) struct DeviceMatch {
    pub(super) is_known: bool,
    pub(super) enrollment: Option<DeviceEnrollment>,
}

/// Compares the device cookies of a request with each user name in it. The client is not known where the name is
/// missing, or where the gateway may not have seen all names.
pub(super) fn matching(policy: &Policy, route: RouteId, source: &Source<'_>, keys: DeviceKeys<'_>) -> DeviceMatch {
    let of = policy.routes.get(route);
    let Some(KnownClients { of: selector, by: KnownBy::Cookie, .. }) = &of.known_clients else {
        return DeviceMatch::default();
    };
    let Ok(found) = extract::keys(selector, source) else { return DeviceMatch::default() };
    if found.absent || found.keys.iter().any(|candidate| candidate.missing) {
        return DeviceMatch::default();
    }
    let names: SmallVec<[String; 1]> = found.keys.iter().map(|candidate| owner_name(&candidate.key)).collect();
    let cookies = DeviceCookies::read(source.head.fields);
    let device = |name: &str| cookies.find(keys.ring, keys.now, DeviceOwner { route: &of.name, name });
    let devices: SmallVec<[_; 1]> = names.iter().map(|name| device(name)).collect();
    let enrollment = match (&names[..], &devices[..]) {
        // With several names, or a name that the application may read otherwise, a success belongs to no certain user.
        ([name], [device]) if undisputed::names_one(selector, source) => {
            Some(DeviceEnrollment { route, name: name.as_str().into(), device: *device })
        }
        _ => None,
    };
    DeviceMatch { is_known: devices.iter().all(Option::is_some), enrollment }
}

/// The name that a cookie is signed for. What a client sends has no NUL, so that no two tuples have one name.
fn owner_name(key: &Key) -> String {
    let parts: SmallVec<[_; 2]> = key.parts().map(String::from_utf8_lossy).collect();
    parts.join("\0")
}

impl DeviceMatch {
    /// The device that has a budget of its own; `None`: it shares the budget of all devices without a valid cookie.
    pub(super) fn id(&self) -> Option<DeviceId> {
        self.enrollment.as_ref()?.device
    }
}

/// Whether the user name that known clients of this route are remembered for may stand in the body.
pub(super) fn reads_body(route: &Route) -> bool {
    route.known_clients.as_ref().is_some_and(|known| known.of.needs_body())
}

/// Without the user name, which does not belong in logs.
impl fmt::Debug for DeviceEnrollment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceEnrollment").field("route", &self.route).finish_non_exhaustive()
    }
}
