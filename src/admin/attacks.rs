//! What is attacked, and who signed in after failures.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{RawQuery, State};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::warn;

use super::AdminState;
use super::problem::Problem;
use super::shared::{ATTACKS, FAILURES, Missing, Others, Scope};
use crate::admin::input::Query;
use crate::api::events::{Attack, AttackAgent, AttackNetwork, AttackedAccount};
use crate::record::Event;
use crate::record::attacks::failed_accounts::Failures;
use crate::record::attacks::report::{AttackReport, plain};
use crate::record::attacks::{AccountId, AttackRecord, Success};
use crate::record::event::{EventKind, EventSubject, FailedAccount};
use crate::record::history::MAX_MINUTES;
use crate::words::clock::wall;
use crate::words::units::counted;

const DEFAULT_MINUTES: u64 = 60;

/// What is attacked
///
/// Requests that belong together, of all gateways, the newest first: whom they concern, where they come from, and which ban would
/// end them. A request that passes costs nothing for it.
#[utoipa::path(
    get,
    path = "/api/v1/attacks",
    params(("minutes" = Option<u64>, Query, minimum = 1, maximum = 1440, description = "Left out: 60.")),
    responses(
        (status = 200, description = "The attacks of that time. Empty: there was none.", body = Vec<Attack>),
        (status = 400, description = "`minutes` is not a whole number within its bounds, or there is another parameter."),
    )
)]
pub(super) async fn attacks(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<(Scope, Missing, Json<Vec<Attack>>), Problem> {
    let query = Query::read(query.as_deref(), &["minutes"])?;
    let minutes = query.number("minutes", DEFAULT_MINUTES, 1..=MAX_MINUTES)?;
    let others = Others::ask(&state, &[ATTACKS.to_owned()], None).await;
    let records: Vec<AttackRecord> = others.contents().filter_map(AttackRecord::from_bytes).collect();
    let reports = state.attacks.report(&records, minutes, wall());
    Ok((others.scope, others.missing(), Json(reports.iter().map(attack).collect())))
}

fn attack(report: &AttackReport) -> Attack {
    Attack {
        id: report.id.clone(),
        kind: report.kind.as_str().to_owned(),
        route: report.route.clone(),
        limit: report.limit.clone(),
        since: report.since.to_string(),
        last: report.last.to_string(),
        over: report.is_over,
        requests: report.requests(),
        denied: report.denied,
        failed: report.failed,
        signed_in: report.signed_in,
        clients: report.clients,
        accounts: report.accounts,
        networks: report
            .networks
            .iter()
            .map(|(network, clients, requests)| AttackNetwork {
                network: plain(network),
                clients: *clients,
                requests: *requests,
            })
            .collect(),
        agents: report
            .agents
            .iter()
            .map(|(agent, requests)| AttackAgent { agent: agent.clone(), requests: *requests })
            .collect(),
        names: report
            .names
            .iter()
            .map(|account| AttackedAccount {
                account: account.account.clone(),
                failed: account.counts.failed,
                signed_in: account.counts.signed_in,
            })
            .collect(),
        others_denied: report.others_denied,
        sentence: report.sentence(),
        ban: report.ban_call(),
        would_hit: report.would_hit,
    }
}

// Tells of sign-ins that follow failures.

/// How often successes are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// After so long all that other gateways have seen before the success is in Redis: they write it every second.
const OTHERS_KNOWN_AFTER: Duration = Duration::from_millis(1500);

/// More successes do not wait for what others have seen.
const MOST_WAITING: usize = 10_000;

/// Publishes an event for each success of an account that failed several times within the hour before, on any gateway, by a
/// client that is no known one of it. Never returns.
pub async fn watch_sign_ins(state: Arc<AdminState>) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut waiting: VecDeque<(Instant, Success)> = VecDeque::new();
    loop {
        ticks.tick().await;
        let now = wall();
        for success in state.attacks.take_successes() {
            if state.attacks.is_told_now(&success, now) {
                tell(&state, success);
            } else if state.records.is_some() && waiting.len() < MOST_WAITING {
                waiting.push_back((Instant::now(), success));
            }
        }
        if waiting.front().is_some_and(|(came, _)| came.elapsed() >= OTHERS_KNOWN_AFTER) {
            // Whoever came meanwhile is looked at again, where the others may have written since.
            let known = failures_of_others(&state).await;
            let ripe = waiting.iter().take_while(|(came, _)| came.elapsed() >= OTHERS_KNOWN_AFTER).count();
            for (_, mut success) in waiting.drain(..ripe) {
                let seen = known.iter().filter_map(|of| of.get(&success.account.id));
                seen.for_each(|seen| success.failures.add(seen));
                if state.attacks.is_told_now(&success, now) {
                    tell(&state, success);
                }
            }
        }
    }
}

/// Which accounts failed on each other gateway. Empty while Redis does not answer.
async fn failures_of_others(state: &AdminState) -> Vec<BTreeMap<AccountId, Failures>> {
    let Some(records) = &state.records else { return Vec::new() };
    let written = records.find_all(FAILURES).await.unwrap_or_default();
    written.iter().filter_map(|content| postcard::from_bytes(content).ok()).collect()
}

fn tell(state: &AdminState, success: Success) {
    let Success { route, client, account, failures, request_id, channels, .. } = success;
    let (count, clients) = (failures.count, failures.clients());
    let reason = format!("after {} from {} within the hour", counted(count, "failure"), counted(clients, "client"));
    warn!(
        account = &*account.masked, %client, failures = count, clients, route = &*route, request_id = &*request_id,
        "signed in after failures: client {client} has signed in to account {} on route {route}, {reason}",
        account.masked
    );
    state.metrics.signed_in_after_failures(&route).inc();
    let key = account.key();
    let event = Arc::new(Event {
        route: Some(Arc::clone(&route)),
        client: Some(client),
        request_id: Some(request_id),
        reason: Some(reason.into()),
        account: Some(FailedAccount { account, failures: count, clients }),
        ..Event::new(EventKind::SignedInAfterFailures)
    });
    state.event_bus.publish(&event);
    let subject = Arc::new(EventSubject::of_route(&route));
    for channel in channels {
        channel.notify(&event, &subject, &route, key, wall());
    }
}
