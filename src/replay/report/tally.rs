//! How often something happened, to whom, and when most of all.

use std::net::IpAddr;

use serde::Serialize;

use super::BusiestClients;
use super::busiest::ClientCount;
use crate::clock::Timestamp;

/// How often something happened. Moments must not run backwards.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub count: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// The number of a minute since 1970, and how often it happened then.
    minute: (u64, u64),
    worst: (u64, u64),
    clients: BusiestClients,
}

/// A tally as it is printed. Times are in RFC 3339, in UTC.
#[derive(Clone, Debug, Serialize)]
pub struct TallyReport {
    pub count: u64,
    /// How many clients it happened to. Where that is not exact it is at least this many.
    pub clients: usize,
    pub clients_are_exact: bool,
    /// The five clients to which it happened most.
    pub top: Vec<ClientCount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The minute in which it happened most often, and how often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_minute: Option<WorstMinute>,
}

#[derive(Clone, Debug, Serialize)]
pub struct WorstMinute {
    pub from: String,
    pub count: u64,
}

impl Tally {
    pub fn add(&mut self, at: Timestamp, client: IpAddr) {
        self.count += 1;
        self.first.get_or_insert(at);
        self.last = Some(at);
        let minute = at.as_micros() / MINUTE;
        if self.minute.0 != minute {
            self.minute = (minute, 0);
        }
        self.minute.1 += 1;
        if self.minute.1 > self.worst.1 {
            self.worst = self.minute;
        }
        self.clients.add(client);
    }

    pub fn report(&self) -> TallyReport {
        let (minute, count) = self.worst;
        let from = Timestamp::from_micros(minute * MINUTE).to_string();
        TallyReport {
            count: self.count,
            clients: self.clients.len(),
            clients_are_exact: self.clients.is_exact(),
            top: self.clients.top(TOP),
            first: self.first.map(|first| first.to_string()),
            last: self.last.map(|last| last.to_string()),
            worst_minute: (count > 0).then_some(WorstMinute { from, count }),
        }
    }
}

/// In microseconds.
const MINUTE: u64 = 60_000_000;

const TOP: usize = 5;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_first_moment_and_the_worst_minute_are_named() {
        let mut tally = Tally::default();
        for seconds in [59, 60, 61, 119, 120, 240] {
            tally.add(Timestamp::from_micros(seconds * 1_000_000), Ipv4Addr::LOCALHOST.into());
        }
        let report = tally.report();
        assert_eq!(report.first.as_deref(), Some("1970-01-01T00:00:59.000Z"));
        let worst = report.worst_minute.unwrap();
        assert_eq!((worst.from.as_str(), worst.count), ("1970-01-01T00:01:00.000Z", 3));
        assert_eq!((report.count, report.clients), (6, 1));
    }
}
