//! Attacks on the routes of the gateway, and sign-ins that follow failures.
//!
//! Nothing of it is in a request's way. A request on a route with an `outcome` leaves a note when it ends; denied requests are
//! read from the kept ones. Once a second [`Attacks::gather`] puts both together: requests that belong to one attack become an
//! [`Episode`], and failures are counted for each account, so that a success is found that follows them.
//!
//! - this file: the notes, and the work of a second.
//! - [`failed_accounts`]: the accounts that failed last.
//! - [`episode`]: an attack while it lasts. Gateways send theirs to each other.
//! - [`report`]: what an operator reads of it.

pub mod episode;
pub mod failed_accounts;
pub mod report;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use smallvec::SmallVec;

use self::episode::{ClientTally, Episode, FEWEST_RECENT, RouteCounts, Signal, SignalKind};
use self::failed_accounts::{ENOUGH_FAILURES, FailedAccounts, Failures};
use self::report::AttackReport;
use super::kept_requests::{KeptRequest, KeptRequests, agent_text};
use super::notify::WebhookChannel;
use super::{ObservedOutcome, RequestRecord};
use crate::record::history::HistoryReport;
use crate::rules::key::{KeyHash, OperatorKey};
use crate::rules::limit::LimitId;
use crate::rules::outcome::Outcome;
use crate::words::clock::Timestamp;
use crate::words::pending_reservations::ToldLater;

/// What is known of a sign-in before its answer: of a request on a route with an `outcome`.
#[derive(Clone, Debug, Default)]
pub struct SignInAttempt {
    /// The client, by the network that it is counted by.
    pub client: Option<(KeyHash, Arc<OperatorKey>)>,
    /// The keys under which limits count the request.
    pub keys: SmallVec<[(LimitId, KeyHash, Arc<OperatorKey>); 2]>,
    /// Whether its client is a known one of the account, as far as that was asked before.
    pub is_known_client: bool,
    /// Whether it was, as the store tells after a success.
    pub was_known: ToldLater,
}

/// Tells accounts apart, on all gateways alike.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct AccountId(pub(super) u64);

/// An account that somebody signs in to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Account {
    pub id: AccountId,
    pub name: Box<str>,
    pub masked: Box<str>,
}

impl Account {
    /// For webhooks, which are notified once in a while of each account.
    pub fn key(&self) -> KeyHash {
        KeyHash(self.id.0.into())
    }

    /// `None`: the key has no user name.
    fn of(key: &OperatorKey) -> Option<Self> {
        let (part, masked) = key.parts.iter().find_map(|part| Some((part, part.masked.as_ref()?)))?;
        if part.value.is_empty() {
            return None;
        }
        let mut hasher = SipHasher13::new();
        part.value.hash(&mut hasher);
        Some(Self { id: AccountId(hasher.finish()), name: (*part.value).into(), masked: (**masked).into() })
    }
}

/// Tells a few accounts of one client apart.
#[expect(clippy::cast_possible_truncation, reason = "a part of a hash")]
fn account_hash(account: AccountId) -> u32 {
    account.0 as u32
}

/// Tells the clients of one account apart, on all gateways alike.
#[expect(clippy::cast_possible_truncation, reason = "a part of a hash")]
fn client_hash(client: IpAddr) -> u32 {
    let mut hasher = SipHasher13::new();
    client.hash(&mut hasher);
    hasher.finish() as u32
}

// The notes of sign-ins, which requests leave.

/// More of a second are not looked at.
const MOST_NOTES: usize = 8192;

/// A sign-in that has ended.
#[derive(Debug)]
struct Note {
    at: Timestamp,
    route: Arc<str>,
    client: IpAddr,
    /// `None`: no limit of the route counts by name.
    account: Option<Account>,
    agent: Box<str>,
    /// `None`: it failed.
    success: Option<SuccessNote>,
}

#[derive(Debug)]
struct SuccessNote {
    is_known_client: bool,
    was_known: ToldLater,
    request_id: Box<str>,
    channels: Vec<Arc<WebhookChannel>>,
}

/// A success that may follow failures.
#[derive(Clone, Debug)]
pub struct Success {
    pub at: Timestamp,
    pub route: Arc<str>,
    pub client: IpAddr,
    pub account: Account,
    /// Those of the account within the hour before, on this gateway.
    pub failures: Failures,
    pub request_id: Box<str>,
    /// Whether the client was a known one of the account.
    was_known: ToldLater,
    /// The webhooks that its route notifies.
    pub channels: Vec<Arc<WebhookChannel>>,
}

/// Failures and successes apart, so that a flood of the ones leaves room for the others.
#[derive(Debug, Default)]
struct Notes {
    failures: Vec<Note>,
    successes: Vec<Note>,
}

/// The attacks of the last day and the accounts that failed last, as this gateway has seen them.
#[derive(Debug, Default)]
pub struct Attacks {
    notes: Mutex<Notes>,
    gathered: Mutex<Gathered>,
}

impl Attacks {
    /// Notes a sign-in that has ended. `channels` are notified where it is a success that follows failures.
    pub(super) fn note(
        &self,
        request: &RequestRecord<'_>,
        route: &Arc<str>,
        channels: &[Arc<WebhookChannel>],
        at: Timestamp,
    ) {
        let outcome = request.outcome.and_then(ObservedOutcome::outcome);
        let (Some(attempt), Some(outcome @ (Outcome::Success | Outcome::Failure))) = (request.sign_in, outcome) else {
            return;
        };
        let is_success = outcome == Outcome::Success;
        // Made before the lock is taken, which all cores share.
        let note = Note {
            at,
            route: Arc::clone(route),
            client: request.identity.client.address(),
            account: attempt.keys.iter().find_map(|(.., key)| Account::of(key)),
            agent: agent_text(request.user_agent.unwrap_or_default()).into(),
            success: is_success.then(|| SuccessNote {
                is_known_client: attempt.is_known_client,
                was_known: attempt.was_known.clone(),
                request_id: request.request_id.into(),
                channels: channels.to_vec(),
            }),
        };
        let mut notes = self.notes.lock();
        let notes = if is_success { &mut notes.successes } else { &mut notes.failures };
        if notes.len() < MOST_NOTES {
            notes.push(note);
        }
    }

    /// The work of a second: takes the notes and the requests that were denied since. `history` is read where it must be known
    /// how much else was asked of a route.
    pub fn gather(&self, kept: &KeptRequests, history: impl FnOnce() -> HistoryReport, now: Timestamp) {
        let Notes { failures, successes } = mem::take(&mut *self.notes.lock());
        let mut notes: Vec<Note> = failures.into_iter().chain(successes).collect();
        // A success is judged by the failures before it.
        notes.sort_by_key(|note| note.at);
        let mut gathered = self.gathered.lock();
        for note in notes {
            gathered.take_note(note);
        }
        gathered.take_denied(kept);
        gathered.judge(history, now);
        gathered.forget_old(now);
    }

    /// The successes of accounts by clients that are no known ones, since the last call.
    pub fn take_successes(&self) -> Vec<Success> {
        mem::take(&mut self.gathered.lock().successes)
    }

    /// Whether so many failures before it are worth an event, which is told once for each client of the account, and of no known
    /// one.
    pub fn is_told_now(&self, success: &Success, now: Timestamp) -> bool {
        success.failures.count >= ENOUGH_FAILURES
            && success.was_known.told() != Some(true)
            && self.gathered.lock().accounts.note_told(success.account.id, success.client, now)
    }

    /// For other gateways: which accounts failed.
    pub fn failures_record(&self, now: Timestamp) -> BTreeMap<AccountId, Failures> {
        self.gathered.lock().accounts.shared(now)
    }

    /// For other gateways: what is attacked.
    pub fn record(&self) -> AttackRecord {
        self.gathered.lock().record()
    }

    /// What is attacked, or was within the last `minutes`, by all gateways together: the newest first.
    pub fn report(&self, others: &[AttackRecord], minutes: u64, now: Timestamp) -> Vec<AttackReport> {
        let own = self.gathered.lock().all();
        let (mut episodes, mut users) = (Vec::<Episode>::new(), HashMap::new());
        for AttackRecord { episodes: seen, users: signed_in } in std::iter::once(&own).chain(others) {
            for episode in seen {
                match episodes.iter_mut().find(|known| known.belongs_to(episode)) {
                    Some(known) => known.merge(episode),
                    None => episodes.push(episode.clone()),
                }
            }
            for (user, successes) in signed_in {
                *users.entry(*user).or_insert(0) += successes;
            }
        }
        let span = Duration::from_secs(minutes * 60);
        episodes.retain(|episode| now.since(episode.last) <= span);
        let mut reports: Vec<_> =
            episodes.iter().filter_map(|episode| AttackReport::of(episode, &users, now)).collect();
        reports.sort_by_key(|report| std::cmp::Reverse(report.last.max(report.since)));
        reports
    }
}

/// What gateways send each other of attacks.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct AttackRecord {
    episodes: Vec<Episode>,
    /// The clients that signed in within the hour, and how often.
    users: Vec<(IpAddr, u64)>,
}

impl AttackRecord {
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("names and counts can be written")
    }

    /// `None`: another version has written it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

// What one gateway has put together.

/// The requests of this time decide whether a route is attacked.
const RECENT: Duration = Duration::from_secs(60);

/// So many requests are remembered of that time.
const MOST_RECENT: usize = 16_384;

/// So many denied requests of a second are looked at, each for as many as there are.
const MOST_DENIED: u64 = 500;

/// So many attacks that are over are kept.
const MOST_FINISHED: usize = 32;

const FINISHED_KEPT: Duration = Duration::from_secs(24 * 3600);

/// So many clients that signed in within the hour are kept, and so many are named to others.
const MOST_USERS: usize = 20_000;

const MOST_USERS_SHARED: usize = 2000;

const USER_FOR: Duration = Duration::from_secs(3600);

/// Over all episodes that are sent to others.
const MOST_CLIENTS_SHARED: usize = 6000;

#[derive(Debug, Default)]
struct Gathered {
    accounts: FailedAccounts,
    /// The newest last, with their routes. Not yet part of an episode.
    recent: VecDeque<(Arc<str>, Signal)>,
    /// By route.
    running: BTreeMap<Arc<str>, Episode>,
    /// The newest last.
    finished: VecDeque<Episode>,
    /// The clients that signed in: how often, and when last.
    users: HashMap<IpAddr, (u64, Timestamp)>,
    successes: Vec<Success>,
    /// The number of the next denied request.
    next_denied: u64,
}

impl Gathered {
    fn take_note(&mut self, note: Note) {
        let Note { at, route, client, account, agent, success } = note;
        let kind = if success.is_some() { SignalKind::SignedIn } else { SignalKind::Failed };
        match (success, &account) {
            (None, Some(account)) => self.accounts.add_failure(account.id, client, at),
            (Some(SuccessNote { is_known_client: false, was_known, request_id, channels }), Some(account)) => {
                let (account, route) = (account.clone(), Arc::clone(&route));
                let failures = self.accounts.failures_of(account.id, at);
                self.successes.push(Success { at, route, client, account, failures, request_id, was_known, channels });
            }
            _ => {}
        }
        self.add(route, Signal { at, client, kind, account, agent, weight: 1 });
    }

    /// Requests that are alike become one signal, so that the many of a flood cost hardly more than the first.
    fn take_denied(&mut self, kept: &KeptRequests) {
        // Each with the key of its account, so that no other key comes to its address meanwhile.
        let mut denied: Vec<(Arc<str>, Signal, Option<Arc<OperatorKey>>)> = Vec::new();
        let mut places = hashbrown::HashMap::new();
        self.next_denied = kept.visit_since(self.next_denied, MOST_DENIED, |request, weight| {
            let Some(route) = request.route_name().filter(|_| request.decision.is_denial()) else { return };
            let of_account = request.limits.iter().filter_map(|met| met.key.as_ref()).find(|key| key.has_name());
            let account = of_account.map(|key| Arc::as_ptr(key).addr());
            let alike = (request.client, request.facts.limit, account, route.as_ptr().addr());
            let known = places.get(&alike).and_then(|place: &usize| denied.get_mut(*place));
            if let Some((_, signal, _)) = known.filter(|(_, signal, _)| &*signal.agent == request.agent()) {
                signal.weight += weight;
                signal.at = signal.at.max(request.facts.came);
                return;
            }
            places.insert(alike, denied.len());
            denied.push((Arc::clone(route), denied_signal(request, weight), of_account.map(Arc::clone)));
        });
        for (route, signal, _) in denied {
            self.add(route, signal);
        }
    }

    fn add(&mut self, route: Arc<str>, signal: Signal) {
        if self.recent.len() >= MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((route, signal));
    }

    /// Moves the requests that belong to an attack into its episode.
    fn judge(&mut self, history: impl FnOnce() -> HistoryReport, now: Timestamp) {
        let counts = self.count_recent();
        let is_suspected = |it: &&RouteCounts| it.suspicious() >= FEWEST_RECENT;
        let history = counts.values().any(|it| is_suspected(&it)).then(history);
        let attacked: HashSet<Arc<str>> = counts
            .iter()
            .filter(|(route, it)| it.is_attack(history.as_ref().map_or(0, |history| history.requests_of(route))))
            .map(|(route, _)| Arc::clone(route))
            .collect();
        let mut left = VecDeque::new();
        for (route, signal) in mem::take(&mut self.recent) {
            let running = self.running.get(&route);
            let is_part = match signal.kind {
                SignalKind::SignedIn => running.is_some(),
                SignalKind::Denied(_) | SignalKind::Failed => {
                    attacked.contains(&route)
                        || counts.get(&route).is_some_and(|it| it.is_heavy(signal.client))
                        || running.is_some_and(|it| it.has_attacker(signal.client))
                }
            };
            if is_part {
                let before = self.users.get(&signal.client).map_or(0, |(successes, _)| *successes);
                let episode = self.running.entry(Arc::clone(&route));
                episode.or_insert_with(|| Episode::begin(&route, signal.at)).add(&signal, before);
            } else if now.since(signal.at) < RECENT {
                left.push_back((route, signal));
            } else if signal.kind == SignalKind::SignedIn {
                self.add_user(signal.client, 1, signal.at);
            }
        }
        self.recent = left;
    }

    /// What is asked of each route lately.
    fn count_recent(&self) -> HashMap<Arc<str>, RouteCounts> {
        let mut counts: HashMap<Arc<str>, RouteCounts> = HashMap::new();
        for (route, signal) in &self.recent {
            let clients = &mut counts.entry(Arc::clone(route)).or_default().clients;
            let tally = clients.entry(signal.client).or_insert_with(|| {
                let before = self.users.get(&signal.client).map_or(0, |(successes, _)| *successes);
                ClientTally::of_user(before)
            });
            tally.add(signal);
        }
        counts
    }

    fn add_user(&mut self, client: IpAddr, successes: u64, at: Timestamp) {
        if self.users.len() >= MOST_USERS && !self.users.contains_key(&client) {
            // The older half goes at once.
            let mut times: Vec<_> = self.users.values().map(|(_, last)| *last).collect();
            let (_, median, _) = times.select_nth_unstable(MOST_USERS / 2);
            let median = *median;
            self.users.retain(|_, (_, last)| *last > median);
        }
        let (count, last) = self.users.entry(client).or_insert((0, at));
        *count += successes;
        *last = at.max(*last);
    }

    fn forget_old(&mut self, now: Timestamp) {
        let over: BTreeMap<_, _>;
        (over, self.running) = mem::take(&mut self.running).into_iter().partition(|(_, episode)| episode.is_over(now));
        for episode in over.into_values() {
            for (client, tally) in episode.clients.iter().filter(|(_, tally)| tally.is_ordinary()) {
                self.add_user(*client, tally.signed_in, episode.last);
            }
            self.finished.push_back(episode);
        }
        self.finished.retain(|episode| now.since(episode.last) < FINISHED_KEPT);
        let surplus = self.finished.len().saturating_sub(MOST_FINISHED);
        self.finished.drain(..surplus);
        self.users.retain(|_, (_, last)| now.since(*last) < USER_FOR);
        self.accounts.forget_old(now);
        self.successes.truncate(MOST_NOTES);
    }

    /// All episodes, and who signed in within the hour.
    fn all(&self) -> AttackRecord {
        let mut users: HashMap<IpAddr, u64> =
            self.users.iter().map(|(client, (successes, _))| (*client, *successes)).collect();
        for (_, signal) in self.recent.iter().filter(|(_, signal)| signal.kind == SignalKind::SignedIn) {
            *users.entry(signal.client).or_default() += 1;
        }
        let episodes = self.running.values().chain(self.finished.iter().rev()).cloned().collect();
        AttackRecord { episodes, users: users.into_iter().collect() }
    }

    /// For other gateways: of users and of clients no more than there is room for.
    fn record(&self) -> AttackRecord {
        let mut room = MOST_CLIENTS_SHARED;
        let shared = self.running.values().chain(self.finished.iter().rev()).map(|episode| {
            let episode = episode.shared(room);
            room -= episode.clients.len();
            episode
        });
        let episodes = shared.collect();
        let mut users = self.all().users;
        users.sort_unstable_by_key(|(client, successes)| (std::cmp::Reverse(*successes), *client));
        users.truncate(MOST_USERS_SHARED);
        users.sort_unstable();
        AttackRecord { episodes, users }
    }
}

fn denied_signal(request: &KeptRequest, weight: u64) -> Signal {
    let mut keys = request.limits.iter().filter_map(|met| met.key.as_deref());
    Signal {
        at: request.facts.came,
        client: request.client,
        kind: SignalKind::Denied(request.limit().map(|limit| (*limit.name).into())),
        account: keys.find_map(Account::of),
        agent: request.agent().into(),
        weight,
    }
}

#[cfg(test)]
mod tests;
