//! Clients that are known by a device cookie: verified where the request is, no store is asked.

use std::fmt;

use smallvec::SmallVec;

use super::Policy;
use crate::client::DeviceId;
use crate::client::device::DeviceCookies;
use crate::client::device::DeviceOwner;
use crate::clock::Timestamp;
use crate::key::Source;
use crate::key::extract;
use crate::key::undisputed;
use crate::route::KnownBy;
use crate::route::KnownClients;
use crate::route::Route;
use crate::route::RouteId;
use crate::signing::KeyRing;

/// What tells genuine device cookies from others.
#[derive(Clone, Copy, Debug)]
pub struct DeviceKeys<'a> {
    pub ring: &'a KeyRing,
    pub now: Timestamp,
}

/// Who becomes known by a cookie when the outcome is a success.
#[derive(Clone)]
pub struct DeviceEnrollment {
    /// Whose `known_clients` say for how long.
    pub route: RouteId,
    /// Whom the request named, in the spelling in which it is compared.
    pub name: Box<str>,
    /// The device that was known already.
    pub device: Option<DeviceId>,
}

/// What the cookies of a request say.
#[derive(Debug, Default)]
pub(super) struct DeviceMatch {
    pub(super) is_known: bool,
    pub(super) enrollment: Option<DeviceEnrollment>,
}

/// Compares the device cookies of a request with each subject that it names. Nobody is known where one is missing, or
/// where not all of them may have been seen.
pub(super) fn matching(policy: &Policy, route: RouteId, source: &Source<'_>, by: DeviceKeys<'_>) -> DeviceMatch {
    let of = policy.routes.get(route);
    let Some(KnownClients { of: selector, by: KnownBy::Cookie, .. }) = &of.known_clients else {
        return DeviceMatch::default();
    };
    let Ok(found) = extract::values(selector, source) else { return DeviceMatch::default() };
    if found.absent || found.values.iter().any(|name| name.is_empty()) {
        return DeviceMatch::default();
    }
    let presented = DeviceCookies::read(source.head.headers);
    let device = |name: &str| presented.find(by.ring, by.now, DeviceOwner { route: &of.name, name });
    let devices: SmallVec<[_; 1]> = found.values.iter().map(|name| device(name)).collect();
    let enrollment = match (&found.values[..], &devices[..]) {
        // Who names several users, or one that the application may not read, does not say which of them succeeds.
        ([name], [device]) if undisputed::part_is_undisputed(selector, source) => {
            Some(DeviceEnrollment { route, name: (&**name).into(), device: *device })
        }
        _ => None,
    };
    DeviceMatch { is_known: devices.iter().all(Option::is_some), enrollment }
}

impl DeviceMatch {
    /// The device whose own budget counts; `None`: it is one of all those that nobody trusts.
    pub(super) fn id(&self) -> Option<DeviceId> {
        self.enrollment.as_ref()?.device
    }
}

/// Whether what tells clients of this route apart may stand in the body.
pub(super) fn reads_body(route: &Route) -> bool {
    route.known_clients.as_ref().is_some_and(|known| known.of.selector.needs_body())
}

/// Who somebody is does not belong into logs.
impl fmt::Debug for DeviceEnrollment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceEnrollment").field("route", &self.route).finish_non_exhaustive()
    }
}
