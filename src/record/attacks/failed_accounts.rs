//! The accounts whose sign-ins failed last, and whether a success follows failures.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::record::attacks::{AccountId, client_hash};
use crate::words::clock::Timestamp;

/// The accounts that failed last. About 4 MB where each failed from a few clients.
const MOST_ACCOUNTS: usize = 10_000;

/// A success is worth an event from so many failures on.
pub const ENOUGH_FAILURES: u64 = 5;

/// Failures that are older do not count.
const KEPT_MINUTES: u64 = 60;

/// So many clients of an account are told apart. More count as so many.
const MOST_CLIENTS: usize = 256;

/// So many clients of an account are named to other gateways.
const MOST_CLIENTS_SHARED: usize = 8;

/// So many accounts are named to other gateways: those with the most failures.
const MOST_ACCOUNTS_SHARED: usize = 2000;

/// The accounts that failed last on this gateway.
#[derive(Debug, Default)]
pub(super) struct FailedAccounts {
    accounts: HashMap<AccountId, FailedAccount>,
    /// By the number of their last failure, so that the oldest are forgotten first.
    by_last: BTreeMap<u64, AccountId>,
    failures: u64,
}

#[derive(Debug, Default)]
struct FailedAccount {
    /// The number of its last failure among all.
    last: u64,
    /// How many failed in each minute, the newest last.
    minutes: VecDeque<(u64, u64)>,
    /// The hashes of the clients that failed.
    clients: Vec<u32>,
    /// The hashes of the clients whose success was told.
    told: Vec<u32>,
}

/// Failures of an account within the hour.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Failures {
    pub count: u64,
    /// The hashes of clients, and how many clients there are besides.
    clients: Vec<u32>,
    more_clients: u64,
}

impl Failures {
    /// From how many clients they came, at most.
    pub fn clients(&self) -> u64 {
        self.clients.len() as u64 + self.more_clients
    }

    /// Adds what another gateway has seen.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.more_clients += other.more_clients;
        for client in &other.clients {
            if !self.clients.contains(client) {
                self.clients.push(*client);
            }
        }
    }
}

impl FailedAccounts {
    pub(super) fn add_failure(&mut self, account: AccountId, client: IpAddr, at: Timestamp) {
        self.failures += 1;
        let failed = self.accounts.entry(account).or_default();
        self.by_last.remove(&failed.last);
        failed.add(self.failures, client_hash(client), minute(at));
        self.by_last.insert(self.failures, account);
        if self.accounts.len() > MOST_ACCOUNTS
            && let Some((_, oldest)) = self.by_last.pop_first()
        {
            self.accounts.remove(&oldest);
        }
    }

    /// The failures of an account within the hour before.
    pub(super) fn failures_of(&self, account: AccountId, now: Timestamp) -> Failures {
        let Some(failed) = self.accounts.get(&account) else { return Failures::default() };
        Failures { count: failed.count(minute(now)), clients: failed.clients.clone(), more_clients: 0 }
    }

    /// Notes that a success of this client was told. Returns whether it was not told before.
    pub(super) fn note_told(&mut self, account: AccountId, client: IpAddr, now: Timestamp) -> bool {
        // The account may have failed on other gateways alone.
        let failed = self.accounts.entry(account).or_default();
        if failed.last == 0 {
            self.failures += 1;
            failed.last = self.failures;
            failed.minutes.push_back((minute(now), 0));
            self.by_last.insert(self.failures, account);
        }
        let client = client_hash(client);
        let is_new = !failed.told.contains(&client);
        if is_new && failed.told.len() < MOST_CLIENTS {
            failed.told.push(client);
        }
        is_new
    }

    /// For other gateways: the accounts with the most failures.
    pub(super) fn shared(&self, now: Timestamp) -> BTreeMap<AccountId, Failures> {
        let now = minute(now);
        let mut most: Vec<_> = self
            .accounts
            .iter()
            .map(|(id, failed)| (failed.count(now), failed.last, *id, failed))
            .filter(|(count, ..)| *count > 0)
            .collect();
        most.sort_unstable_by_key(|(count, last, ..)| std::cmp::Reverse((*count, *last)));
        let shared = most.into_iter().take(MOST_ACCOUNTS_SHARED).map(|(count, _, id, failed)| {
            let named = &failed.clients[..failed.clients.len().min(MOST_CLIENTS_SHARED)];
            let more_clients = (failed.clients.len() - named.len()) as u64;
            (id, Failures { count, clients: named.to_vec(), more_clients })
        });
        shared.collect()
    }

    /// Forgets accounts that have not failed within the hour.
    pub(super) fn forget_old(&mut self, now: Timestamp) {
        let now = minute(now);
        let by_last = &mut self.by_last;
        self.accounts.retain(|_, failed| {
            let is_kept = failed.minutes.back().is_some_and(|(last, _)| is_within_hour(*last, now));
            if !is_kept {
                by_last.remove(&failed.last);
            }
            is_kept
        });
    }
}

impl FailedAccount {
    fn add(&mut self, number: u64, client: u32, minute: u64) {
        self.last = number;
        match self.minutes.back_mut() {
            Some((last, count)) if *last == minute => *count += 1,
            _ => self.minutes.push_back((minute, 1)),
        }
        while self.minutes.front().is_some_and(|(first, _)| !is_within_hour(*first, minute)) {
            self.minutes.pop_front();
        }
        if self.clients.len() < MOST_CLIENTS && !self.clients.contains(&client) {
            self.clients.push(client);
        }
    }

    fn count(&self, now: u64) -> u64 {
        self.minutes.iter().filter(|(minute, _)| is_within_hour(*minute, now)).map(|(_, count)| count).sum()
    }
}

/// A failure counts for an hour, and for the rest of its minute.
fn is_within_hour(minute: u64, now: u64) -> bool {
    minute <= now && minute + KEPT_MINUTES >= now
}

fn minute(moment: Timestamp) -> u64 {
    moment.as_micros() / 60_000_000
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn client(number: u8) -> IpAddr {
        [198, 51, 100, number].into()
    }

    #[test]
    fn failures_count_for_an_hour_from_anywhere() {
        let (mut accounts, alice) = (FailedAccounts::default(), AccountId(1));
        for number in 0..6 {
            accounts.add_failure(alice, client(number % 3), START + Duration::from_secs(60 * u64::from(number)));
        }
        let failures = |at| accounts.failures_of(alice, START + Duration::from_secs(at));
        assert_eq!((failures(300).count, failures(300).clients()), (6, 3));
        assert_eq!(failures(3660).count, 5);
        assert_eq!(failures(2 * 3600).count, 0);
        assert_eq!(accounts.failures_of(AccountId(2), START).count, 0);
    }

    #[test]
    fn the_accounts_that_failed_last_are_kept() {
        let mut accounts = FailedAccounts::default();
        for number in 0..MOST_ACCOUNTS as u64 + 5 {
            accounts.add_failure(AccountId(number), client(1), START);
            // This one goes on failing.
            accounts.add_failure(AccountId(3), client(1), START);
        }
        assert_eq!((accounts.accounts.len(), accounts.by_last.len()), (MOST_ACCOUNTS, MOST_ACCOUNTS));
        assert_eq!(accounts.failures_of(AccountId(0), START).count, 0);
        assert!(accounts.failures_of(AccountId(3), START).count > 10_000);
        accounts.forget_old(START + Duration::from_secs(2 * 3600));
        assert_eq!((accounts.accounts.len(), accounts.by_last.len()), (0, 0));
    }

    #[test]
    fn a_client_whose_success_was_told_is_told_once() {
        let mut accounts = FailedAccounts::default();
        accounts.add_failure(AccountId(1), client(1), START);
        assert!(
            accounts.note_told(AccountId(1), client(2), START) && accounts.note_told(AccountId(1), client(3), START)
        );
        assert!(!accounts.note_told(AccountId(1), client(2), START));
        assert!(
            accounts.note_told(AccountId(9), client(2), START) && !accounts.note_told(AccountId(9), client(2), START)
        );
    }

    #[test]
    fn gateways_together_count_a_client_once() {
        let (mut one, mut other) = (FailedAccounts::default(), FailedAccounts::default());
        for number in 0..4 {
            one.add_failure(AccountId(1), client(number), START);
            other.add_failure(AccountId(1), client(number + 2), START);
        }
        let mut failures = one.failures_of(AccountId(1), START);
        failures.add(&other.shared(START)[&AccountId(1)]);
        assert_eq!((failures.count, failures.clients()), (8, 6));
    }
}
