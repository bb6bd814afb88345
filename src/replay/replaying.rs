//! Replays the requests of logs under a configuration, and under an older one beside it.

use super::LogFiles;
use super::Simulation;
use super::input::Position;
use super::input::ReadError;
use super::report::Differences;
use super::report::ReplayCounts;
use super::report::ReplayReport;
use super::report::replay_report::AgainstReport;
use crate::client::ClientIp;
use crate::clock::Timestamp;
use crate::config::Settings;

/// Replays all requests of `logs` under `settings`, and beside it under the settings `against`. `progress` is called
/// now and then.
pub fn replay(
    mut logs: LogFiles,
    settings: Settings,
    against: Option<Settings>,
    mut progress: impl FnMut(Position),
) -> Result<ReplayReport, ReadError> {
    let contents = logs.contents();
    let clients = settings.clients.clone();
    let (mut simulation, left_out) = Simulation::new(settings, &contents);
    let mut counts = ReplayCounts::new(simulation.policy());
    let mut old = against.map(|settings| {
        let (simulation, left_out) = Simulation::new(settings, &contents);
        let counts = ReplayCounts::new(simulation.policy());
        Old { simulation, left_out, counts, differences: Differences::default() }
    });
    let mut totals = Totals::default();
    while let Some(request) = logs.next_request()? {
        totals.read += 1;
        if totals.read.is_multiple_of(PROGRESS_EVERY) {
            progress(logs.position());
        }
        let Some(decision) = simulation.decide(&request) else {
            totals.refused += 1;
            continue;
        };
        totals.note(decision.at, request.started);
        totals.from_trusted_proxies += u64::from(clients.trusts(ClientIp::new(request.client)));
        totals.unknown_outcomes += u64::from(decision.has_unknown_outcome);
        counts.add(request.client, &decision);
        if let Some(old) = &mut old
            && let Some(before) = old.simulation.decide(&request)
        {
            let (policy, old_policy) = (simulation.policy(), old.simulation.policy());
            old.counts.add(request.client, &before);
            old.differences.add(request.client, (policy, &decision), (old_policy, &before));
        }
    }
    progress(logs.position());
    Ok(ReplayReport {
        formats: logs.formats(),
        files: logs.len(),
        lines: logs.counts(),
        requests: totals.read - totals.refused,
        refused: totals.refused,
        late: totals.late,
        from_trusted_proxies: totals.from_trusted_proxies,
        unknown_outcomes: totals.unknown_outcomes,
        from: totals.first.map(|first| first.to_string()),
        to: totals.last.map(|last| last.to_string()),
        decisions: counts.decisions(),
        denied: counts.denied(),
        limits: counts.limit_reports(simulation.policy()),
        routes: counts.route_reports(simulation.policy()),
        lists: counts.list_reports(),
        left_out,
        against: old.map(|old| AgainstReport {
            decisions: old.counts.decisions(),
            differences: old.differences.reports(),
            left_out: old.left_out,
        }),
    })
}

/// The older configuration.
struct Old {
    simulation: Simulation,
    left_out: Vec<super::LeftOut>,
    counts: ReplayCounts,
    differences: Differences,
}

#[derive(Default)]
struct Totals {
    read: u64,
    refused: u64,
    late: u64,
    from_trusted_proxies: u64,
    unknown_outcomes: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Totals {
    fn note(&mut self, at: Timestamp, started: Timestamp) {
        self.late += u64::from(at > started);
        self.first.get_or_insert(at);
        self.last = Some(at);
    }
}

/// In requests.
const PROGRESS_EVERY: u64 = 4096;
