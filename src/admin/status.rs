//! How the gateway is: what it runs, what it counts with, and which other gateways there are.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use jiff::SignedDuration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::AdminState;
use crate::admin::bans::ban_of;
use crate::admin::config::{LoadedConfig, ReloadReport, WaitingSettings};
use crate::admin::health::store;
use crate::admin::shared::{Others, STATUS, Scope, StatusRecord, history};
use crate::api::verdict::{Denials, Lock, LockedBy};
use crate::api::{
    Advice, Certificate, Configuration, Fault, FollowedList, Gateway, GatewayState, Level, Reload, ReloadResult,
    Server, Status, Traffic, Upstream, Verdict,
};
use crate::listen::tls::NameExpiries;
use crate::record;
use crate::record::history::{HistoryChunk, HistoryReport};
use crate::record::{DecisionLabel, GatewayName, ListGauge};
use crate::rules::decision::operator::LimitQuery;
use crate::rules::limit::Rule;
use crate::rules::outcome::Outcome;
use crate::rules::route::Route;
use crate::store::Store;
use crate::store::shared_records::{GatewayRecords, Standing};
use crate::words::clock::{Timestamp, wall};
use crate::words::units::whole_seconds;

/// How the gateway is
///
/// And which other gateways count in the same Redis: each is asked, and named as missing where it does not answer within
/// 300 ms.
#[utoipa::path(
    get,
    path = "/api/v1/status",
    responses((status = 200, description = "The status now.", body = Status))
)]
async fn show(State(state): State<Arc<AdminState>>) -> Json<Status> {
    let known = KnownGateways::ask(&state).await;
    Json(status(&state, known).await.0)
}

/// The sum of all steps.
fn traffic(report: &HistoryReport) -> Traffic {
    let count = |words: &[&str]| -> u64 {
        let counted = |words_of_route: &BTreeMap<String, Vec<u64>>| -> u64 {
            words.iter().filter_map(|word| words_of_route.get(*word)).flatten().sum()
        };
        report.routes.values().map(counted).sum()
    };
    let decided = |is_wanted: fn(DecisionLabel) -> bool| {
        let labels = DecisionLabel::ALL.into_iter().filter(|label| is_wanted(*label));
        count(&labels.map(DecisionLabel::as_str).collect::<Vec<_>>())
    };
    Traffic {
        passed: decided(DecisionLabel::passes),
        denied: decided(DecisionLabel::is_denial),
        errors: decided(|label| label == DecisionLabel::Error),
        signed_in: count(&[Outcome::Success.as_str()]),
        failed: count(&[Outcome::Failure.as_str()]),
    }
}

/// The limit that denied most, and how often.
fn busiest_limit(report: &HistoryReport) -> Option<(String, u64)> {
    let counted = report.limits.iter().filter_map(|(limit, decisions)| {
        let denials = DecisionLabel::ALL.into_iter().filter(|label| label.is_denial());
        let denied: u64 = denials.filter_map(|label| decisions.get(label.as_str())).flatten().sum();
        (denied > 0).then(|| (limit.clone(), denied))
    });
    counted.max_by_key(|(_, denied)| *denied)
}

/// How long a scrape may show what was judged for one before: each judgement asks all gateways.
const JUDGEMENT_HOLDS: Duration = Duration::from_secs(2);

/// A scrape waits so long for a judgement. In an outage of Redis it takes longer, and the metrics are needed then.
const JUDGEMENT_PATIENCE: Duration = Duration::from_millis(100);

/// What the metrics show of the verdict.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Judgement {
    pub(in crate::admin) level: Level,
    /// Each limit without a key, and whether it or a ban of it locks its routes for everyone.
    pub(in crate::admin) lockdowns: Vec<(String, bool)>,
}

/// The last judgement, for the metrics.
#[derive(Debug, Default)]
pub(in crate::admin) struct LastJudgement {
    judged: parking_lot::Mutex<Option<(Instant, Judgement)>>,
    /// Only one judgement is under way.
    judging: Mutex<()>,
}

impl LastJudgement {
    fn fresh(&self) -> Option<Judgement> {
        let judged = self.judged.lock();
        judged.as_ref().filter(|(judged, _)| judged.elapsed() < JUDGEMENT_HOLDS).map(|(_, judgement)| judgement.clone())
    }
}

/// The verdict, for a scrape. Where the judgement takes too long it is ready for the next one, and this one shows the one before
/// it, or trouble where this gateway itself knows that the store is away.
pub(in crate::admin) async fn judgement(state: &Arc<AdminState>) -> Judgement {
    if let Some(judgement) = state.last_judgement.fresh() {
        return judgement;
    }
    let mut judging = tokio::spawn(judge(Arc::clone(state)));
    if let Ok(Ok(judgement)) = timeout(JUDGEMENT_PATIENCE, &mut judging).await {
        return judgement;
    }
    let before = state.last_judgement.judged.lock().as_ref().map(|(_, judgement)| judgement.clone());
    let is_up = state.gauges().store_up;
    match before {
        Some(before) => Judgement { level: if is_up { before.level } else { Level::Trouble }, ..before },
        // Nothing is said that was never judged.
        None if is_up => judging.await.unwrap_or_else(|_| Judgement::of_trouble(state)),
        None => Judgement::of_trouble(state),
    }
}

impl Judgement {
    fn of(level: Level, locks: &[Lock], state: &AdminState) -> Self {
        let lockdowns = limits_of_everyone(state).into_iter().map(|LimitOfEveryone { query, .. }| {
            let holds = locks.iter().any(|lock| lock.limit == *query.limit);
            (query.limit.to_string(), holds)
        });
        Self { level, lockdowns: lockdowns.collect() }
    }

    /// Nothing is known but that it is not well.
    fn of_trouble(state: &AdminState) -> Self {
        Self::of(Level::Trouble, &[], state)
    }
}

async fn judge(state: Arc<AdminState>) -> Judgement {
    let _alone = state.last_judgement.judging.lock().await;
    if let Some(judgement) = state.last_judgement.fresh() {
        return judgement;
    }
    let (status, denials) = status(&state, KnownGateways::ask(&state).await).await;
    let judgement = Judgement::of(status.verdict.level, &denials.locks, &state);
    *state.last_judgement.judged.lock() = Some((Instant::now(), judgement.clone()));
    judgement
}

// The path of the status.

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new().routes(routes!(show))
}

// Which gateway this is.

/// Of the name within an id, in characters.
const MAX_NAME: usize = 64;

/// The gateways, and whether all that are there are among them and have answered.
pub(super) struct KnownGateways {
    /// This one first.
    pub(super) gateways: Vec<Gateway>,
    pub(super) is_complete: bool,
    /// The limit that denied most in the last minute, of all of them together, and how often.
    pub(super) busiest_limit: Option<(String, u64)>,
}

impl KnownGateways {
    /// Asks the other gateways, for a little more than 300 ms at most.
    pub(super) async fn ask(state: &AdminState) -> Self {
        let asked = wall();
        let mut fields = vec![STATUS.to_owned()];
        fields.extend(last_chunks(asked).map(history));
        let others = Others::ask(state, &fields, None).await;
        let now = wall();
        let mut report = state.metrics.history().report(1, now);
        let last_minute = traffic(&report);
        let own =
            response(&state.identity.id, StatusRecord::of(state), last_minute, (Standing::Up, Duration::ZERO), now);
        let mut gateways: Vec<Gateway> =
            others.gateways.iter().filter_map(|records| of_records(records, now)).collect();
        gateways.sort_by(|one, other| one.id.cmp(&other.id));
        gateways.insert(0, own);
        for chunk in others.gateways.iter().flat_map(|records| records.contents.iter().skip(1)).flatten() {
            if let Some(chunk) = HistoryChunk::from_bytes(chunk) {
                report.add(&chunk);
            }
        }
        let is_missing = |gateway: &Gateway| gateway.state == GatewayState::Missing;
        let is_complete = others.scope == Scope::All && !gateways.iter().any(is_missing);
        Self { gateways, is_complete, busiest_limit: busiest_limit(&report) }
    }

    /// What all of them forwarded and denied in the last minute.
    pub(super) fn last_minute(&self) -> Traffic {
        self.gateways.iter().fold(Traffic::default(), |sum, gateway| sum + gateway.last_minute)
    }
}

/// The parts of the history that the last minute is in.
fn last_chunks(now: Timestamp) -> RangeInclusive<u64> {
    HistoryChunk::number(HistoryReport::of_last(1, now).from)..=HistoryChunk::number(now)
}

fn of_records(records: &GatewayRecords, now: Timestamp) -> Option<Gateway> {
    let GatewayRecords { gateway, standing, age, contents } = records;
    let (status, chunks) = contents.split_first()?;
    let record = StatusRecord::from_bytes(status.as_deref()?)?;
    let mut last_minute = HistoryReport::of_last(1, now);
    for chunk in chunks.iter().flatten().filter_map(|chunk| HistoryChunk::from_bytes(chunk)) {
        last_minute.add(&chunk);
    }
    // One that has answered was heard of just now.
    let age = if *standing == Standing::Up { Duration::ZERO } else { *age };
    Some(response(gateway, record, traffic(&last_minute), (*standing, age), now))
}

fn response(
    id: &str,
    record: StatusRecord,
    last_minute: Traffic,
    (standing, age): (Standing, Duration),
    now: Timestamp,
) -> Gateway {
    let state = match standing {
        Standing::Up if record.draining => GatewayState::Draining,
        Standing::Up => GatewayState::Up,
        Standing::Missing => GatewayState::Missing,
        Standing::Gone => GatewayState::Gone,
        Standing::Ended => GatewayState::Ended,
    };
    let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    Gateway {
        // A gateway of an earlier version has told no name.
        name: if record.name.is_empty() { id.to_owned() } else { record.name },
        id: id.to_owned(),
        state,
        version: record.version,
        since: record.since,
        last_seen: Timestamp::from_micros(now.as_micros().saturating_sub(age)).to_string(),
        last_minute,
    }
}

/// Which process this is, among the gateways on one store.
#[derive(Clone, Debug)]
pub struct GatewayIdentity {
    /// The name that it began with and a random number: `eu-1-3f2a90c4`. Several may have one name, and none the same id.
    pub id: Arc<str>,
    /// What operators call it.
    pub name: Arc<GatewayName>,
    /// When it started, by the wall clock.
    pub since: Timestamp,
}

impl GatewayIdentity {
    /// Of this process. What does not belong in an id is a hyphen there.
    pub fn new(name: Arc<GatewayName>, since: Timestamp) -> Self {
        let is_of_id = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
        let start: String =
            name.get().chars().map(|letter| if is_of_id(letter) { letter } else { '-' }).take(MAX_NAME).collect();
        Self { id: format!("{start}-{:08x}", fastrand::u32(..)).into(), name, since }
    }
}

// What the status is made of.

/// The status of this gateway, with what it knows of the others, and what the verdict was judged from besides.
async fn status(state: &AdminState, known: KnownGateways) -> (Status, Denials) {
    let gauges = state.gauges();
    let mut status = Status {
        verdict: Verdict::default(),
        version: env!("PORTCULLIS_VERSION").to_owned(),
        since: state.identity.since.to_string(),
        gateway: state.identity.name.get().to_string(),
        configuration: configuration(&state.config.load(), state.last_reload.load_full()),
        last_minute: known.last_minute(),
        complete: known.is_complete,
        gateways: known.gateways,
        listeners: state.listeners.load().iter().map(ToString::to_string).collect(),
        certificates: certificates(&state.name_expiries.load(), jiff::Timestamp::now()),
        upstreams: upstreams(gauges.servers),
        lists: gauges.lists.into_iter().map(list).collect(),
        store: store(state),
        faults: gauges.faults.into_iter().map(told_fault).collect(),
        advice: all_advice(state),
    };
    let denials = Denials { locks: locks(state).await, busiest_limit: known.busiest_limit };
    status.verdict = Verdict::of(&status, &denials);
    (status, denials)
}

/// Names whose certificates end together are one entry.
fn certificates(name_expiries: &NameExpiries, now: jiff::Timestamp) -> Vec<Certificate> {
    let mut ends: BTreeMap<jiff::Timestamp, Vec<String>> = BTreeMap::new();
    for (name, expires) in name_expiries.iter() {
        ends.entry(expires).or_default().push(name.to_owned());
    }
    let certificate = |(expires, names): (jiff::Timestamp, _)| Certificate {
        names,
        expires: expires.to_string(),
        ends_soon: expires.duration_since(now) < SOON,
    };
    ends.into_iter().map(certificate).collect()
}

fn list(gauge: ListGauge) -> FollowedList {
    FollowedList {
        list: gauge.name.to_string(),
        up: gauge.is_up(),
        source: gauge.source,
        entries: gauge.entries,
        answered: gauge.answered.map(|answered| answered.to_string()),
        reason: gauge.failure.map(|failure| failure.to_string()),
    }
}

/// As in the alert of `config/prometheus/rules.yaml`.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

fn configuration(config: &LoadedConfig, last_reload: Option<Arc<ReloadReport>>) -> Configuration {
    let last_reload = last_reload.map(|report| Reload {
        at: report.at.to_string(),
        result: if report.refused.is_none() { ReloadResult::Success } else { ReloadResult::Failure },
        reason: report.refused.clone(),
    });
    let waiting = config.waiting.iter().flat_map(|waiting| &waiting.keys).map(|&key| key.to_owned()).collect();
    Configuration { source: config.source.clone(), loaded: config.loaded.to_string(), waiting, last_reload }
}

/// `servers` are in the order of their upstreams.
fn upstreams(servers: Vec<(Arc<str>, Arc<str>, bool)>) -> Vec<Upstream> {
    let mut upstreams: Vec<Upstream> = Vec::new();
    for (name, server, healthy) in servers {
        if upstreams.last().is_none_or(|last| *last.name != *name) {
            upstreams.push(Upstream { name: name.to_string(), servers: Vec::new() });
        }
        if let Some(last) = upstreams.last_mut() {
            last.servers.push(Server { server: server.to_string(), healthy });
        }
    }
    upstreams
}

/// How long the answer may wait for what the store says of limits without a key.
const LOCKS_TIMEOUT: Duration = Duration::from_millis(300);

/// What locks a route for everyone now: limits without a key, and bans of them, that let no request pass.
async fn locks(state: &AdminState) -> Vec<Lock> {
    let mut locks = Vec::new();
    let end = Instant::now() + LOCKS_TIMEOUT;
    for LimitOfEveryone { query, routes, keeps_out } in limits_of_everyone(state) {
        let (by, seconds) = match ban_of(state, &query) {
            Some(ban) => (LockedBy::Ban, ban.left),
            None if !keeps_out => continue,
            // A store that is away or slow is trouble already, and nothing is known of its limits.
            None => match timeout_at(end, state.store.look(&query.batch())).await {
                Ok(Ok(verdicts)) if verdicts.iter().any(|verdict| !verdict.passes()) => {
                    let wait = verdicts.iter().filter_map(|verdict| verdict.retry_after).max();
                    match query.rule {
                        Rule::Concurrent(_) => (LockedBy::Requests, 0),
                        _ => (LockedBy::Limit, wait.map_or(0, |wait| whole_seconds(wait).max(1))),
                    }
                }
                _ => continue,
            },
        };
        locks.push(Lock { limit: query.limit.to_string(), routes, by, seconds });
    }
    locks
}

/// A limit that has one key for all requests.
struct LimitOfEveryone {
    query: LimitQuery,
    /// The routes that have it; none: it stands on every request.
    routes: Vec<String>,
    /// Whether it denies the requests beyond it. A ban of its key always does.
    keeps_out: bool,
}

fn limits_of_everyone(state: &AdminState) -> Vec<LimitOfEveryone> {
    let (policy, hashers) = (state.policy.load(), state.store.hashers());
    let of_everyone = policy.limits.iter().enumerate().filter(|(_, limit)| limit.key.parts.is_empty() && !limit.shadow);
    let queried = of_everyone.filter_map(|(place, limit)| {
        let has_it =
            |route: &&Route| route.domain.is_none() && route.limits.iter().any(|id| usize::from(id.0) == place);
        let routes: Vec<_> = policy.routes.all().iter().filter(has_it).map(|route| route.name.to_string()).collect();
        let query = LimitQuery::new(&policy, &limit.name, &[], None, &hashers).ok()?;
        let is_everywhere = policy.everywhere.iter().any(|id| usize::from(id.0) == place);
        let keeps_out = limit.then.action.keeps_out();
        (is_everywhere || !routes.is_empty()).then_some(LimitOfEveryone { query, routes, keeps_out })
    });
    queried.collect()
}

// What looks misconfigured.

/// What looks misconfigured
///
/// Judged from the last thousand requests or more, and gone when it is no longer so: a forwarding header from peers that are
/// no trusted proxies, one address that sends nearly all requests, a login field that half of the requests lack, a `pattern`
/// that no name matches, answers that match neither side of an outcome, a limit that counted nothing while a thousand requests passed. As soon as it is so: a
/// route that waits for answers, and that a proxy asks about which forwards the requests itself; keys of tokens that cannot be
/// fetched; a reload that was refused; settings that wait for the next start. Also what `portcullis check` warns of.
#[utoipa::path(
    get,
    path = "/api/v1/advice",
    responses((
        status = 200,
        description = "All advice that holds now. Empty: nothing looks wrong.",
        body = Vec<Advice>,
    ))
)]
pub(super) async fn advice(State(state): State<Arc<AdminState>>) -> Json<Vec<Advice>> {
    Json(all_advice(&state))
}

/// All advice that holds now.
fn all_advice(state: &AdminState) -> Vec<Advice> {
    let config = state.config.load();
    let observed = state.advisor.advice();
    let refused = state.last_reload.load().as_ref().and_then(|report| report.advice());
    let waiting = config.waiting.as_ref().map(WaitingSettings::advice);
    refused.iter().chain(&waiting).chain(&config.warnings).chain(&observed).map(told).collect()
}

fn told_fault(record::Fault { about, sentence, since }: record::Fault) -> Fault {
    Fault { about: about.to_owned(), sentence, since: since.to_string() }
}

fn told(advice: &record::advice::Advice) -> Advice {
    let record::advice::Advice { kind, message, since, limit, route, help } = advice.clone();
    Advice { kind: kind.as_str().to_owned(), message, since: since.to_string(), limit, route, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_gateways_of_one_name_have_two_ids() {
        let id = |name: &str| {
            let shared = Arc::<GatewayName>::default();
            shared.set(name.to_owned());
            GatewayIdentity::new(shared, Timestamp::EPOCH).id.to_string()
        };
        assert!(id("eu-1").starts_with("eu-1-") && id("eu-1") != id("eu-1"));
        assert!(id("web1:/run/a b.sock").starts_with("web1--run-a-b.sock-"));
    }
}
