//! The part of a ban that scripts do not read, as JSON.

use std::sync::Arc;

use ipnet::IpNet;
use serde::Deserialize;
use serde::Serialize;

use super::ban::BanSubject;
use super::sealed::SealedNetworks;
use crate::key::DisplayKey;
use crate::key::KeyHash;

/// The subject and the reason of a ban. Of the values of a key it has what logs show as well, and the addresses of clients.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct BanBlob {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default)]
    limit: String,
    #[serde(default)]
    parts: Vec<(String, String)>,
    /// The networks of clients in the key, each with the place of its part: only in what stays with this gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    networks: Vec<(usize, String)>,
    /// The same networks, encrypted: in what other gateways read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
    reason: String,
}

impl BanBlob {
    /// Without the addresses in a key.
    fn of(subject: &BanSubject, reason: &str) -> Self {
        let reason = reason.to_owned();
        match subject {
            BanSubject::Address(network) => Self { address: Some(network.to_string()), reason, ..Self::default() },
            BanSubject::Key { key, limit, named, .. } => Self {
                key: Some(format!("{:032x}", key.0)),
                limit: limit.to_string(),
                parts: named.masked.clone(),
                reason,
                ..Self::default()
            },
        }
    }

    /// With the addresses in clear.
    pub(super) fn with_networks(subject: &BanSubject, reason: &str) -> Self {
        let mut blob = Self::of(subject, reason);
        if let BanSubject::Key { named, .. } = subject {
            blob.networks = named.networks.iter().map(|(place, network)| (*place, network.to_string())).collect();
        }
        blob
    }

    /// With the addresses encrypted.
    pub(super) fn with_sealed(subject: &BanSubject, reason: &str, sealed: Option<SealedNetworks>) -> Self {
        Self { sealed: sealed.map(SealedNetworks::into_text), ..Self::of(subject, reason) }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts are JSON")
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The addresses that it has in clear.
    pub(super) fn networks(&self) -> Vec<(usize, IpNet)> {
        let networks = self.networks.iter().filter_map(|(place, network)| Some((*place, network.parse().ok()?)));
        networks.collect()
    }

    /// Those that it has encrypted.
    pub(super) fn sealed(&mut self) -> Option<SealedNetworks> {
        SealedNetworks::read(self.sealed.take()?)
    }

    /// The subject, without addresses in its key, and the reason.
    pub(super) fn subject(self) -> Option<(BanSubject, Arc<str>)> {
        let Self { address, key, limit, parts, reason, .. } = self;
        let subject = match (address, key) {
            (Some(network), None) => BanSubject::Address(network.parse::<IpNet>().ok()?.trunc()),
            (None, Some(key)) => BanSubject::Key {
                key: KeyHash(u128::from_str_radix(&key, 16).ok()?),
                limit: limit.into(),
                named: DisplayKey { masked: parts, ..DisplayKey::default() },
                client: None,
            },
            _ => return None,
        };
        Some((subject, reason.into()))
    }
}
