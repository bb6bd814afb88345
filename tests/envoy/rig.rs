//! Envoy in front of an application, and the gateway that it asks.

use crate::support::{Envoy, Gateway, Origin, Request};

/// The three servers of a test.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) envoy: Envoy,
    pub(crate) gateway: Gateway,
    pub(crate) origin: Origin,
}

impl Rig {
    /// `rules` is the configuration without listeners.
    #[track_caller]
    pub(crate) fn new(file: &str, origin: Origin, rules: &str) -> Self {
        Self::changed(file, &[], origin, rules)
    }

    /// With other texts in the file.
    #[track_caller]
    pub(crate) fn changed(file: &str, changes: &[(&str, &str)], origin: Origin, rules: &str) -> Self {
        let rig = Self::unwarmed(file, changes, origin, rules);
        rig.warm_up();
        rig
    }

    /// Where Envoy asks about some requests alone.
    #[track_caller]
    pub(crate) fn without_warming(file: &str, origin: Origin, rules: &str) -> Self {
        Self::unwarmed(file, &[], origin, rules)
    }

    /// Both: with other texts, and not asked yet.
    #[track_caller]
    pub(crate) fn unwarmed(file: &str, changes: &[(&str, &str)], origin: Origin, rules: &str) -> Self {
        let gateway = Gateway::with_files(
            format!("listen: {{address: 127.0.0.1:0, serves: decisions}}\nadmin: {{address: 127.0.0.1:0}}\n{rules}"),
            &[("slow-down.html", PAGE)],
        );
        let envoy = Envoy::start(file, origin.address(), gateway.address(), changes);
        Self { envoy, gateway, origin }
    }

    /// Envoy connects to the gateway with its first question.
    #[track_caller]
    fn warm_up(&self) {
        let answer = self.request("GET", "/").from("127.0.0.99").send();
        assert!(answer.header("x-request-id").is_some(), "{answer:?}");
    }

    pub(crate) fn request(&self, method: &str, target: &str) -> Request {
        Request::new(self.envoy.address(), method, target)
    }

    /// How many requests with this target the application got.
    pub(crate) fn reached(&self, target: &str) -> usize {
        self.origin.requests().iter().filter(|received| received.target == target).count()
    }
}

/// The page of a denial.
pub(crate) const PAGE: &str = "<!doctype html><title>Too fast</title><p>Slow down – please.";
