//! What the other gateways know.

use std::time::Duration;

use super::missing::Missing;
use super::scope::Scope;
use crate::admin::AdminState;
use crate::store::shared_records::GatewayRecords;
use crate::store::shared_records::Standing;

/// The answers of the other gateways on this store.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Others {
    pub(in crate::admin) scope: Scope,
    /// Those that were here within the last hour.
    pub(in crate::admin) gateways: Vec<GatewayRecords>,
}

impl Others {
    /// Asks them for these fields, for a little more than 300 ms at most. `id` is a request whose story is wanted.
    pub(in crate::admin) async fn ask(state: &AdminState, fields: &[String], id: Option<&str>) -> Self {
        let Some(records) = &state.records else { return Self { scope: Scope::All, gateways: Vec::new() } };
        match records.ask(fields, id).await {
            Ok(mut gateways) => {
                gateways.retain(|gateway| gateway.standing == Standing::Up || gateway.age <= KNOWN_FOR);
                Self { scope: Scope::All, gateways }
            }
            Err(_) => Self { scope: Scope::ThisGateway, gateways: Vec::new() },
        }
    }

    /// Those that did not answer, and did not end in order.
    pub(in crate::admin) fn missing(&self) -> Missing {
        let is_missing = |gateway: &&GatewayRecords| matches!(gateway.standing, Standing::Missing | Standing::Gone);
        Missing(self.gateways.iter().filter(is_missing).map(|gateway| gateway.gateway.clone()).collect())
    }

    /// The contents of all fields of all of them.
    pub(in crate::admin) fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.gateways.iter().flat_map(|gateway| gateway.contents.iter().flatten().map(Vec::as_slice))
    }
}

/// For how long a gateway that has gone is named.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
