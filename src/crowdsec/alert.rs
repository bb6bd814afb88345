//! A ban as it is reported to a Local API: an alert with one decision.

use std::fmt::Write;

use ipnet::IpNet;
use serde_json::Value;
use serde_json::json;

use super::ORIGIN;
use crate::clock;
use crate::clock::Timestamp;

/// A ban of an address or a range.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Alert {
    pub network: IpNet,
    /// Why it was banned: the name of a limit, or `operator`. With the network it identifies the decision, so that two limits may
    /// ban one address.
    pub cause: String,
    /// For people.
    pub message: String,
    pub until: Timestamp,
}

impl Alert {
    /// `None`: the ban has ended.
    pub(super) fn to_json(&self) -> Option<Value> {
        let now = clock::wall();
        let left = self.until.since(now);
        if left.is_zero() {
            return None;
        }
        let (scope, value, scenario, at) = (self.scope(), self.value(), self.scenario(), now.to_string());
        // The API counts the duration from `stop_at`.
        Some(json!({
            "capacity": 0, "events": [], "events_count": 1, "leakspeed": "0", "simulated": false,
            "message": self.message, "scenario": scenario, "scenario_hash": "", "scenario_version": "",
            "source": {"scope": scope, "value": value}, "start_at": at, "stop_at": at,
            "decisions": [{
                "duration": format!("{}ms", left.as_millis().max(1)),
                "origin": ORIGIN, "scenario": scenario, "scope": scope, "type": "ban", "value": value,
            }],
        }))
    }

    /// The query that selects its decision.
    pub(super) fn query(&self) -> String {
        let [scope, value, scenario] = [self.scope(), &self.value(), &self.scenario()].map(percent_encoded);
        format!("scopes={scope}&value={value}&type=ban&origin={ORIGIN}&scenario={scenario}")
    }

    fn is_address(&self) -> bool {
        self.network.prefix_len() == self.network.max_prefix_len()
    }

    fn scope(&self) -> &'static str {
        if self.is_address() { "Ip" } else { "Range" }
    }

    fn value(&self) -> String {
        if self.is_address() { self.network.addr().to_string() } else { self.network.to_string() }
    }

    fn scenario(&self) -> String {
        format!("{ORIGIN}/{}", self.cause)
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::crowdsec::duration;

    fn alert(network: &str, left: Duration) -> Alert {
        let (cause, message) = ("login pace".to_owned(), "why".to_owned());
        Alert { network: network.parse().unwrap(), cause, message, until: clock::wall() + left }
    }

    #[test]
    fn an_alert_has_one_decision_of_our_own() {
        let json = alert("2001:db8::/64", Duration::from_secs(600)).to_json().unwrap();
        let decision = &json["decisions"][0];
        assert_eq!((&decision["scope"], &decision["value"]), (&json!("Range"), &json!("2001:db8::/64")));
        assert_eq!(
            (&decision["origin"], &decision["scenario"]),
            (&json!("portcullis"), &json!("portcullis/login pace"))
        );
        let duration = duration::parse(decision["duration"].as_str().unwrap()).unwrap();
        assert!(duration <= Duration::from_secs(600) && duration > Duration::from_secs(590), "{duration:?}");
        assert_eq!(alert("198.51.100.7/32", Duration::ZERO).to_json(), None);
    }

    #[test]
    fn its_decision_is_found_by_scope_value_and_scenario() {
        assert_eq!(
            alert("198.51.100.7/32", Duration::ZERO).query(),
            "scopes=Ip&value=198.51.100.7&type=ban&origin=portcullis&scenario=portcullis%2Flogin%20pace"
        );
        assert!(alert("2001:db8::/64", Duration::ZERO).query().contains("scopes=Range&value=2001%3Adb8%3A%3A%2F64&"));
    }
}
