//! An attack on one route while it lasts: who takes part, whom it concerns, and who else is met by it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::attacks::{Account, AccountId, account_hash};
use crate::words::clock::Timestamp;

/// An attack is over when no request of it came for so long.
pub const OVER_AFTER: Duration = Duration::from_secs(5 * 60);

/// So many clients of an episode are told apart. Requests of more count as of clients without an address.
const MOST_CLIENTS: usize = 10_000;

const MOST_ACCOUNTS: usize = 10_000;

const MOST_AGENTS: usize = 64;

/// What other gateways are told of an episode.
const MOST_CLIENTS_SHARED: usize = 2000;

const MOST_ACCOUNTS_SHARED: usize = 500;

const MOST_AGENTS_SHARED: usize = 8;

/// So many accounts of a client are told apart.
const MOST_ACCOUNTS_OF_CLIENT: usize = 4;

/// So many clients of an account are told apart.
const MOST_CLIENTS_OF_ACCOUNT: usize = 4;

/// A request that may be part of an attack, or a sign-in that is none.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    pub(super) at: Timestamp,
    pub(super) client: IpAddr,
    pub(super) kind: SignalKind,
    pub(super) account: Option<Account>,
    pub(super) agent: Box<str>,
    /// How many requests this one stands for.
    pub(super) weight: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum SignalKind {
    /// By this limit, or by a list or a ban.
    Denied(Option<Box<str>>),
    Failed,
    SignedIn,
}

/// An attack on a route, as one gateway or all of them have seen it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Episode {
    pub route: String,
    pub since: Timestamp,
    pub last: Timestamp,
    /// How many requests each limit denied.
    pub limits: BTreeMap<String, u64>,
    pub clients: HashMap<IpAddr, ClientTally>,
    /// The requests of clients that are not told apart, and how many such clients there are at least.
    pub rest: ClientTally,
    pub more_clients: u64,
    pub accounts: HashMap<AccountId, AccountTally>,
    pub more_accounts: u64,
    pub agents: HashMap<String, u64>,
}

/// The requests of one client.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClientTally {
    pub denied: u64,
    pub failed: u64,
    pub signed_in: u64,
    /// How many successes it had within the hour before the attack.
    pub before: u64,
    /// The hashes of its accounts, a few at most.
    accounts: Vec<u32>,
}

/// The requests for one account.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AccountTally {
    /// In clear. It never leaves the gateway that saw it.
    #[serde(skip)]
    name: Option<String>,
    masked: String,
    /// By client, a few at most: whether one takes part shows only later.
    clients: Vec<(IpAddr, AccountCounts)>,
    /// Of clients that are not told apart.
    rest: AccountCounts,
}

/// How requests for an account ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct AccountCounts {
    pub denied: u64,
    pub failed: u64,
    pub signed_in: u64,
}

impl ClientTally {
    /// Of a client that has signed in so often before.
    pub(super) fn of_user(before: u64) -> Self {
        Self { before, ..Self::default() }
    }

    pub fn requests(&self) -> u64 {
        self.denied + self.failed + self.signed_in
    }

    pub(super) fn suspicious(&self) -> u64 {
        self.denied + self.failed
    }

    /// Whether it looks like a user or a network of users: it signs in about as often as it fails, or it fails now and then
    /// for its own account.
    pub fn is_ordinary(&self) -> bool {
        let successes = self.signed_in + self.before;
        let fails_seldom = self.failed <= successes || self.accounts.len() <= 2 && self.failed <= 4 + 2 * successes;
        successes > 0 && fails_seldom && self.denied <= 20 + 10 * successes
    }

    /// Whether it takes part in the attack.
    pub fn takes_part(&self) -> bool {
        self.suspicious() > 0 && !self.is_ordinary()
    }

    pub(super) fn add(&mut self, signal: &Signal) {
        match signal.kind {
            SignalKind::Denied(_) => self.denied += signal.weight,
            SignalKind::Failed => self.failed += signal.weight,
            SignalKind::SignedIn => self.signed_in += signal.weight,
        }
        if let Some(account) = &signal.account {
            self.add_account(account_hash(account.id));
        }
    }

    fn add_account(&mut self, account: u32) {
        if self.accounts.len() < MOST_ACCOUNTS_OF_CLIENT && !self.accounts.contains(&account) {
            self.accounts.push(account);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.denied += other.denied;
        self.failed += other.failed;
        self.signed_in += other.signed_in;
        self.before = self.before.max(other.before);
        other.accounts.iter().for_each(|account| self.add_account(*account));
    }
}

impl AccountTally {
    /// In clear where this gateway saw it.
    pub fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.masked)
    }

    /// How those requests ended whose client belongs to the attack, or is not told apart.
    pub(super) fn counts_of(&self, belongs: impl Fn(IpAddr) -> bool) -> AccountCounts {
        let mut sum = self.rest;
        self.clients.iter().filter(|(client, _)| belongs(*client)).for_each(|(_, counts)| sum.merge(counts));
        sum
    }

    fn all(&self) -> AccountCounts {
        self.counts_of(|_| true)
    }

    /// Clients that have signed in are told apart first: few do, and most of them have no part in the attack.
    fn add(&mut self, client: IpAddr, counts: &AccountCounts) {
        if let Some((_, known)) = self.clients.iter_mut().find(|(known, _)| *known == client) {
            return known.merge(counts);
        }
        if self.clients.len() < MOST_CLIENTS_OF_ACCOUNT {
            return self.clients.push((client, *counts));
        }
        let replaced = self.clients.iter_mut().find(|(_, known)| counts.signed_in > 0 && known.signed_in == 0);
        match replaced {
            Some(place) => {
                let (_, before) = std::mem::replace(place, (client, *counts));
                self.rest.merge(&before);
            }
            None => self.rest.merge(counts),
        }
    }

    fn merge(&mut self, other: &Self) {
        if self.name.is_none() {
            self.name.clone_from(&other.name);
        }
        other.clients.iter().for_each(|(client, counts)| self.add(*client, counts));
        self.rest.merge(&other.rest);
    }
}

impl AccountCounts {
    fn of(signal: &Signal) -> Self {
        let mut counts = Self::default();
        let counter = match signal.kind {
            SignalKind::Denied(_) => &mut counts.denied,
            SignalKind::Failed => &mut counts.failed,
            SignalKind::SignedIn => &mut counts.signed_in,
        };
        *counter = signal.weight;
        counts
    }

    pub fn requests(&self) -> u64 {
        self.denied + self.failed + self.signed_in
    }

    fn merge(&mut self, other: &Self) {
        self.denied += other.denied;
        self.failed += other.failed;
        self.signed_in += other.signed_in;
    }
}

impl Episode {
    pub(super) fn begin(route: &str, at: Timestamp) -> Self {
        Self {
            route: route.to_owned(),
            since: at,
            last: at,
            limits: BTreeMap::new(),
            clients: HashMap::new(),
            rest: ClientTally::default(),
            more_clients: 0,
            accounts: HashMap::new(),
            more_accounts: 0,
            agents: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, signal: &Signal, before: u64) {
        let is_attack = signal.kind != SignalKind::SignedIn;
        if is_attack {
            self.since = self.since.min(signal.at);
            self.last = self.last.max(signal.at);
        }
        if let SignalKind::Denied(Some(limit)) = &signal.kind {
            *self.limits.entry(limit.to_string()).or_default() += signal.weight;
        }
        if let Some(client) = bounded(&mut self.clients, signal.client, MOST_CLIENTS) {
            client.add(signal);
            client.before = client.before.max(before);
        } else {
            self.rest.add(signal);
            self.more_clients += 1;
        }
        if is_attack && let Some(agent) = bounded(&mut self.agents, signal.agent.to_string(), MOST_AGENTS) {
            *agent += signal.weight;
        }
        if let Some(account) = &signal.account {
            self.add_account(account, signal);
        }
    }

    fn add_account(&mut self, account: &Account, signal: &Signal) {
        if self.accounts.len() >= MOST_ACCOUNTS && !self.accounts.contains_key(&account.id) {
            self.more_accounts += 1;
            return;
        }
        let tally = self.accounts.entry(account.id).or_insert_with(|| AccountTally {
            name: Some(account.name.to_string()),
            masked: account.masked.to_string(),
            clients: Vec::new(),
            rest: AccountCounts::default(),
        });
        tally.add(signal.client, &AccountCounts::of(signal));
    }

    /// Whether a client has taken part so far.
    pub(super) fn has_attacker(&self, client: IpAddr) -> bool {
        self.clients.get(&client).is_some_and(ClientTally::takes_part)
    }

    /// Whether requests of a client count as of the attack: it takes part, or it is not told apart.
    pub(super) fn counts(&self, client: IpAddr) -> bool {
        self.clients.get(&client).is_none_or(ClientTally::takes_part)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.last) >= OVER_AFTER
    }

    /// Whether both are one attack, seen by two gateways.
    pub fn belongs_to(&self, other: &Self) -> bool {
        self.route == other.route && self.since <= other.last + OVER_AFTER && other.since <= self.last + OVER_AFTER
    }

    /// Adds what another gateway has seen.
    pub fn merge(&mut self, other: &Self) {
        self.since = self.since.min(other.since);
        self.last = self.last.max(other.last);
        for (limit, denied) in &other.limits {
            *self.limits.entry(limit.clone()).or_default() += denied;
        }
        for (client, tally) in &other.clients {
            self.clients.entry(*client).or_default().merge(tally);
        }
        self.rest.merge(&other.rest);
        self.more_clients += other.more_clients;
        for (id, tally) in &other.accounts {
            match self.accounts.get_mut(id) {
                None => drop(self.accounts.insert(*id, tally.clone())),
                Some(known) => known.merge(tally),
            }
        }
        self.more_accounts += other.more_accounts;
        for (agent, requests) in &other.agents {
            *self.agents.entry(agent.clone()).or_default() += requests;
        }
    }

    /// For other gateways: what weighs most.
    pub(super) fn shared(&self, most_clients: usize) -> Self {
        let mut shared = self.clone();
        let left_out = keep_heaviest(&mut shared.clients, most_clients.min(MOST_CLIENTS_SHARED), |tally| {
            (tally.takes_part(), tally.requests() + tally.before)
        });
        shared.more_clients += left_out.len() as u64;
        for tally in &left_out {
            shared.rest.merge(tally);
        }
        shared.rest.accounts.clear();
        let left_out = keep_heaviest(&mut shared.accounts, MOST_ACCOUNTS_SHARED, |tally| tally.all().requests());
        shared.more_accounts += left_out.len() as u64;
        keep_heaviest(&mut shared.agents, MOST_AGENTS_SHARED, |requests| *requests);
        shared
    }
}

// Whether a route is attacked.

/// Fewer on one gateway are no attack yet.
pub(super) const FEWEST_RECENT: u64 = 5;

/// A client that has so many alone attacks, whatever else is asked of the route.
const HEAVY: u64 = 10;

/// The recent requests of a route.
#[derive(Debug, Default)]
pub(super) struct RouteCounts {
    pub(super) clients: HashMap<IpAddr, ClientTally>,
}

impl RouteCounts {
    fn attackers(&self) -> impl Iterator<Item = &ClientTally> {
        self.clients.values().filter(|tally| tally.takes_part())
    }

    pub(super) fn suspicious(&self) -> u64 {
        self.attackers().map(ClientTally::suspicious).sum()
    }

    /// `all`: how many requests the route had in the same time. Most sign-ins fail, or a twentieth of all requests is denied.
    pub(super) fn is_attack(&self, all: u64) -> bool {
        let sum = |of: fn(&ClientTally) -> u64| self.attackers().map(of).sum::<u64>();
        let (denied, failed) = (sum(|it| it.denied), sum(|it| it.failed));
        let outcomes: u64 = self.clients.values().map(|it| it.failed + it.signed_in).sum();
        failed >= FEWEST_RECENT && failed * 2 >= outcomes || denied >= FEWEST_RECENT && denied * 20 >= all
    }

    pub(super) fn is_heavy(&self, client: IpAddr) -> bool {
        self.clients.get(&client).is_some_and(|it| it.takes_part() && it.suspicious() >= HEAVY)
    }
}

/// The value of a key, where there is room for it.
fn bounded<K: Eq + Hash, V: Default>(map: &mut HashMap<K, V>, key: K, most: usize) -> Option<&mut V> {
    if map.len() >= most && !map.contains_key(&key) {
        return None;
    }
    Some(map.entry(key).or_default())
}

/// Keeps the values that weigh most, and returns the others.
fn keep_heaviest<K, V, W>(map: &mut HashMap<K, V>, most: usize, weight: impl Fn(&V) -> W) -> Vec<V>
where
    K: Clone + Eq + Hash + Ord,
    W: Ord,
{
    if map.len() <= most {
        return Vec::new();
    }
    let mut weighed: Vec<(W, K)> = map.iter().map(|(key, value)| (weight(value), key.clone())).collect();
    weighed.sort_unstable_by(|one, other| other.cmp(one));
    let dropped: HashSet<K> = weighed.into_iter().skip(most).map(|(_, key)| key).collect();
    map.extract_if(|key, _| dropped.contains(key)).map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn tally(denied: u64, failed: u64, signed_in: u64, before: u64, accounts: u32) -> ClientTally {
        ClientTally { denied, failed, signed_in, before, accounts: (0..accounts).collect() }
    }

    #[test]
    fn a_user_who_mistypes_is_no_attacker_and_one_who_got_in_is() {
        for ordinary in [tally(0, 3, 1, 0, 1), tally(5, 0, 0, 1, 1), tally(0, 40, 60, 0, 4), tally(12, 2, 0, 3, 2)] {
            assert!(!ordinary.takes_part(), "{ordinary:?}");
        }
        for attacker in [
            tally(0, 3, 0, 0, 1),
            tally(9, 0, 0, 0, 0),
            // It guessed one of many accounts.
            tally(0, 3, 1, 0, 4),
            tally(0, 30, 1, 0, 1),
            // Its own account is no excuse.
            tally(5000, 4, 0, 1, 2),
        ] {
            assert!(attacker.takes_part(), "{attacker:?}");
        }
    }

    #[test]
    fn two_gateways_see_one_attack() {
        let signal = |client: [u8; 4], account: u64, seconds: u64, kind: SignalKind| Signal {
            at: START + Duration::from_secs(seconds),
            client: client.into(),
            kind,
            account: Some(Account { id: AccountId(account), name: "alice".into(), masked: "a***".into() }),
            agent: "curl/8".into(),
            weight: 1,
        };
        let (mut one, mut other) = (Episode::begin("login", START), Episode::begin("login", START));
        one.add(&signal([127, 0, 0, 1], 1, 0, SignalKind::Failed), 0);
        other.add(&signal([127, 0, 0, 1], 1, 3, SignalKind::Denied(Some("pace".into()))), 0);
        other.add(&signal([127, 0, 0, 2], 2, 4, SignalKind::SignedIn), 2);
        let sent = postcard::to_stdvec(&other.shared(100)).unwrap();
        let shared: Episode = postcard::from_bytes(&sent).unwrap();
        assert!(one.belongs_to(&shared) && shared.accounts.values().all(|account| account.shown_name() == "a***"));
        one.merge(&shared);
        assert_eq!((one.since, one.last), (START, START + Duration::from_secs(3)));
        assert_eq!(one.clients[&IpAddr::from([127, 0, 0, 1])].requests(), 2);
        assert_eq!(one.clients[&IpAddr::from([127, 0, 0, 2])].before, 2);
        // Only what clients of the attack asked for an account counts: the user's own sign-in does not, wherever it was seen.
        let mut alice = one.accounts[&AccountId(1)].clone();
        for number in 1..=10 {
            alice.add([127, 0, 1, number].into(), &AccountCounts { failed: 1, ..AccountCounts::default() });
        }
        let user = IpAddr::from([127, 0, 0, 9]);
        alice.add(user, &AccountCounts { signed_in: 1, ..AccountCounts::default() });
        assert_eq!((alice.clients.len(), alice.all()), (4, AccountCounts { denied: 1, failed: 11, signed_in: 1 }));
        let of_attack = alice.counts_of(|client| client != user);
        assert_eq!(of_attack, AccountCounts { denied: 1, failed: 11, signed_in: 0 });
        // The gateway that saw the name shows it.
        let name = |account| one.accounts[&AccountId(account)].shown_name();
        assert_eq!((name(1), name(2)), ("alice", "a***"));
        assert_eq!((one.limits["pace"], one.agents["curl/8"]), (1, 2));
        assert!(!one.is_over(START + Duration::from_secs(302)) && one.is_over(START + Duration::from_secs(303)));
    }

    #[test]
    fn what_is_shared_is_bounded_and_keeps_the_heaviest() {
        let mut episode = Episode::begin("login", START);
        for number in 0..3000_u32 {
            let client = IpAddr::from((0x7f01_0000 + number).to_be_bytes());
            episode.clients.insert(client, tally(u64::from(number), 0, 0, 0, 0));
        }
        let shared = episode.shared(50);
        assert_eq!((shared.clients.len(), shared.more_clients), (50, 2950));
        assert_eq!(shared.clients.values().map(|tally| tally.denied).min(), Some(2950));
        let sum = |episode: &Episode| episode.clients.values().map(|tally| tally.denied).sum::<u64>();
        assert_eq!(sum(&shared) + shared.rest.denied, sum(&episode));
    }
}
