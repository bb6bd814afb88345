//! An attack as operators read it: of which kind it is, from which networks it comes, and which ban would end it.

use std::collections::HashMap;
use std::hash::Hasher;
use std::net::IpAddr;

use ipnet::IpNet;
use siphasher::sip::SipHasher13;

use crate::record::attacks::episode::{AccountCounts, AccountTally, ClientTally, Episode};
use crate::words::clock::Timestamp;
use crate::words::units::counted;

/// Fewer requests are no attack.
const FEWEST_REQUESTS: u64 = 20;

/// Nor are fewer in a minute, on average: users who mistype come as often.
const FEWEST_A_MINUTE: u64 = 5;

/// How many agents and accounts are named.
const MOST_NAMED: usize = 20;

/// Of how many networks a ban consists at most: as many as one call takes.
const MOST_BANNED: usize = 10_000;

/// How long the proposed ban lasts.
const BAN_FOR: &str = "1h";

/// An attack, over all gateways.
#[derive(Clone, Debug, PartialEq)]
pub struct AttackReport {
    pub id: String,
    pub kind: AttackKind,
    pub route: String,
    /// The limit that denied most of its requests.
    pub limit: Option<String>,
    pub since: Timestamp,
    pub last: Timestamp,
    pub is_over: bool,
    pub denied: u64,
    pub failed: u64,
    pub signed_in: u64,
    pub clients: u64,
    pub accounts: u64,
    /// Each with its clients and its requests, those with the most requests first.
    pub networks: Vec<(IpNet, u64, u64)>,
    pub agents: Vec<(String, u64)>,
    /// Those with the most requests first. Only those of clients of the attack count.
    pub names: Vec<AttackedName>,
    pub others_denied: u64,
    /// The networks that a ban would have to name, and how many users it would meet.
    pub ban: Vec<IpNet>,
    pub would_hit: u64,
}

/// An account that is attacked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttackedName {
    /// In clear where this gateway saw it.
    pub account: String,
    pub counts: AccountCounts,
}

/// What an attack tries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AttackKind {
    /// Many passwords for few accounts.
    Guessing,
    /// Many accounts.
    Stuffing,
    /// About one password for each of many accounts, from many clients.
    Spraying,
    /// Requests that no outcome or account tells apart.
    Flood,
}

/// From so many clients on accounts are sprayed.
const CLIENTS_OF_SPRAYING: u64 = 10;

impl AttackKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guessing => "guessing",
            Self::Stuffing => "stuffing",
            Self::Spraying => "spraying",
            Self::Flood => "flood",
        }
    }

    /// `attempts` are the requests whose account is known.
    fn of(attempts: u64, accounts: u64, clients: u64, failed: u64) -> Self {
        if accounts == 0 {
            // Without a limit by account no account is known. Failures still say that somebody guesses.
            return if failed > 0 { Self::Guessing } else { Self::Flood };
        }
        if accounts <= 5 || attempts >= accounts * 10 {
            Self::Guessing
        } else if attempts * 2 <= accounts * 3 && clients >= CLIENTS_OF_SPRAYING {
            Self::Spraying
        } else {
            Self::Stuffing
        }
    }
}

impl AttackReport {
    /// `users`: clients that signed in within the hour, besides those of the episode. `None`: it is too small to be an attack.
    pub fn of(episode: &Episode, users: &HashMap<IpAddr, u64>, now: Timestamp) -> Option<Self> {
        let (attackers, bystanders): (Vec<_>, Vec<_>) =
            episode.clients.iter().partition(|(_, tally)| tally.takes_part());
        let mut sum = episode.rest.clone();
        for (_, tally) in &attackers {
            sum.denied += tally.denied;
            sum.failed += tally.failed;
            sum.signed_in += tally.signed_in;
        }
        let seconds = episode.last.since(episode.since).as_secs();
        if sum.requests() < FEWEST_REQUESTS || sum.requests() * 60 < FEWEST_A_MINUTE * seconds {
            return None;
        }
        let mut names: Vec<AttackedName> = episode.accounts.values().filter_map(|it| attacked(it, episode)).collect();
        names.sort_by(|one, other| {
            let rank = |it: &AccountCounts| (it.signed_in > 0 && it.failed > 0, it.requests());
            rank(&other.counts).cmp(&rank(&one.counts)).then_with(|| one.account.cmp(&other.account))
        });
        let attempts = names.iter().map(|it| it.counts.requests()).sum();
        let accounts = names.len() as u64 + episode.more_accounts;
        let clients = attackers.len() as u64 + episode.more_clients;
        names.truncate(MOST_NAMED);

        let users_of_route = bystanders.iter().filter(|(_, tally)| tally.is_ordinary()).map(|(client, _)| **client);
        let is_attacker = |client: &IpAddr| episode.clients.get(client).is_some_and(ClientTally::takes_part);
        let others: Vec<IpAddr> =
            users_of_route.chain(users.keys().filter(|client| !is_attacker(client)).copied()).collect();
        let members: Vec<Member> =
            attackers.iter().map(|(client, tally)| Member { address: **client, requests: tally.requests() }).collect();
        let ban = banned(&members, &others);
        Some(Self {
            id: id(episode),
            kind: AttackKind::of(attempts, accounts, clients, sum.failed),
            route: episode.route.clone(),
            limit: episode.limits.iter().max_by_key(|(_, denied)| **denied).map(|(limit, _)| limit.clone()),
            since: episode.since,
            last: episode.last,
            is_over: episode.is_over(now),
            denied: sum.denied,
            failed: sum.failed,
            signed_in: sum.signed_in,
            clients,
            accounts,
            networks: networks(&members, &others),
            agents: heaviest_agents(episode),
            names,
            others_denied: bystanders.iter().filter(|(_, tally)| tally.denied > 0 && tally.before > 0).count() as u64,
            would_hit: attackers.iter().filter(|(_, tally)| tally.before > 0).count() as u64,
            ban,
        })
    }

    /// All of its requests.
    pub fn requests(&self) -> u64 {
        self.denied + self.failed + self.signed_in
    }

    /// What an operator would write to end it. `None`: no address is known.
    pub fn ban_call(&self) -> Option<String> {
        let networks: Vec<String> = self.ban.iter().map(plain).collect();
        (!networks.is_empty()).then(|| format!("portcullis bans add {} --for {BAN_FOR}", networks.join(" ")))
    }

    /// What happens, in words.
    pub fn sentence(&self) -> String {
        let [one, many, past, what] = match self.kind {
            AttackKind::Guessing => ["guesses", "guess", "guessed", "passwords"],
            AttackKind::Stuffing => ["tries", "try", "tried", "passwords for many accounts"],
            AttackKind::Spraying => ["tries", "try", "tried", "about one password for each account"],
            AttackKind::Flood => ["sends", "send", "sent", "too many requests"],
        };
        let verb = match self.clients {
            _ if self.is_over => past,
            1 => one,
            _ => many,
        };
        let accounts = match self.accounts {
            0 => String::new(),
            accounts => format!(" for {}", counted(accounts, "account")),
        };
        let outcomes = match self.failed + self.signed_in {
            0 => String::new(),
            _ => format!(", {} failed, {} signed in", self.failed, self.signed_in),
        };
        format!(
            "{} {verb} {what} on route {}: {}{accounts}, {} denied{outcomes}.",
            counted(self.clients, "client"),
            self.route,
            counted(self.requests(), "request"),
            self.denied,
        )
    }
}

/// `None`: no client of the attack failed or was denied for it.
fn attacked(account: &AccountTally, episode: &Episode) -> Option<AttackedName> {
    let counts = account.counts_of(|client| episode.counts(client));
    (counts.denied + counts.failed > 0).then(|| AttackedName { account: account.shown_name().to_owned(), counts })
}

/// Stays the same while the attack lasts, and on all gateways.
fn id(episode: &Episode) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(episode.route.as_bytes());
    hasher.write_u64(episode.since.as_micros() / 60_000_000);
    format!("{:08x}", hasher.finish() >> 32)
}

fn heaviest_agents(episode: &Episode) -> Vec<(String, u64)> {
    let mut agents: Vec<_> = episode.agents.iter().map(|(agent, requests)| (agent.clone(), *requests)).collect();
    agents.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    agents.truncate(MOST_NAMED);
    agents
}

// The networks that an attack comes from: the fewest prefixes that hold its clients and few others.

/// A client of the attack.
#[derive(Clone, Copy, Debug)]
struct Member {
    address: IpAddr,
    requests: u64,
}

/// Shorter prefixes are never named.
const SHORTEST: [u8; 2] = [16, 32];

/// A network that is wider than one subscriber's or one small office's is only named where it has several clients of the attack.
const USUAL: [u8; 2] = [24, 64];

const CLIENTS_OF_WIDE: usize = 8;

/// The networks that hold 90 % of the requests, each with its clients and requests. One user among ten clients of the attack may
/// be in them.
fn networks(members: &[Member], users: &[IpAddr]) -> Vec<(IpNet, u64, u64)> {
    let mut covered = cover(members, users, |users, clients| users * 10 <= clients);
    let total: u64 = members.iter().map(|member| member.requests).sum();
    let mut held = 0;
    covered.retain(|(_, _, requests)| {
        let is_needed = held * 10 < total * 9;
        held += requests;
        is_needed
    });
    covered
}

/// The networks to ban, which hold no user.
fn banned(members: &[Member], users: &[IpAddr]) -> Vec<IpNet> {
    let covered = cover(members, users, |users, _| users == 0);
    covered.into_iter().map(|(network, ..)| network).take(MOST_BANNED).collect()
}

/// The fewest prefixes that hold all members, with their clients and requests, those with the most requests first.
/// `may_hold`: whether a network may hold so many users beside so many clients of the attack.
fn cover(members: &[Member], users: &[IpAddr], may_hold: impl Fn(usize, usize) -> bool) -> Vec<(IpNet, u64, u64)> {
    let mut covered = Vec::new();
    for family in [Family::V4, Family::V6] {
        let mut members: Vec<_> =
            members.iter().filter_map(|it| Some((family.bits(it.address)?, it.requests))).collect();
        let mut users: Vec<_> = users.iter().filter_map(|user| family.bits(*user)).collect();
        members.sort_unstable();
        users.sort_unstable();
        users.dedup();
        family.cover(&members, &users, &may_hold, &mut covered);
    }
    covered.sort_by(|one, other| other.2.cmp(&one.2).then_with(|| one.0.cmp(&other.0)));
    covered
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Family {
    V4,
    V6,
}

impl Family {
    /// The address at the upper end of the number; `None`: it is of the other family.
    fn bits(self, address: IpAddr) -> Option<u128> {
        match (self, address) {
            (Self::V4, IpAddr::V4(address)) => Some(u128::from(address.to_bits()) << 96),
            (Self::V6, IpAddr::V6(address)) => Some(address.to_bits()),
            _ => None,
        }
    }

    fn length(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// `members` and `users` are in the order of their addresses.
    fn cover(
        self,
        members: &[(u128, u64)],
        users: &[u128],
        may_hold: &impl Fn(usize, usize) -> bool,
        covered: &mut Vec<(IpNet, u64, u64)>,
    ) {
        let (Some((first, _)), Some((last, _))) = (members.first(), members.last()) else { return };
        let common = u8::try_from((first ^ last).leading_zeros()).unwrap_or(u8::MAX).min(self.length());
        let mask = u128::MAX.checked_shl(128 - u32::from(common)).unwrap_or_default();
        let (low, high) = (first & mask, first | !mask);
        let inside = &users[users.partition_point(|user| *user < low)..users.partition_point(|user| *user <= high)];
        let place = usize::from(self == Self::V6);
        let is_narrow = common >= USUAL[place] || common >= SHORTEST[place] && members.len() >= CLIENTS_OF_WIDE;
        if common == self.length() || is_narrow && may_hold(inside.len(), members.len()) {
            let requests = members.iter().map(|(_, requests)| requests).sum();
            covered.push((self.network(low, common), members.len() as u64, requests));
            return;
        }
        // The first bit in which they differ.
        let half = low | 1 << (127 - u32::from(common));
        let (lower, upper) = members.split_at(members.partition_point(|(member, _)| *member < half));
        self.cover(lower, inside, may_hold, covered);
        self.cover(upper, inside, may_hold, covered);
    }

    fn network(self, bits: u128, length: u8) -> IpNet {
        let address = match self {
            Self::V4 => IpAddr::from(u32::try_from(bits >> 96).unwrap_or_default().to_be_bytes()),
            Self::V6 => IpAddr::from(bits.to_be_bytes()),
        };
        IpNet::new_assert(address, length)
    }
}

/// An address without its prefix where it is a single one.
pub fn plain(network: &IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() { network.addr().to_string() } else { network.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(addresses: &[&str]) -> Vec<Member> {
        addresses.iter().map(|it| Member { address: it.parse().unwrap(), requests: 10 }).collect()
    }

    fn texts(covered: &[IpNet]) -> Vec<String> {
        let mut texts: Vec<String> = covered.iter().map(plain).collect();
        texts.sort();
        texts
    }

    #[test]
    fn clients_of_one_network_are_one_prefix_and_users_stay_outside() {
        let attackers = members(&["198.51.100.1", "198.51.100.2", "198.51.100.250", "203.0.113.9", "2001:db8::1"]);
        assert_eq!(texts(&banned(&attackers, &[])), ["198.51.100.0/24", "2001:db8::1", "203.0.113.9"]);
        let users = ["198.51.100.200".parse().unwrap(), "203.0.113.10".parse().unwrap()];
        assert_eq!(
            texts(&banned(&attackers, &users)),
            ["198.51.100.0/30", "198.51.100.250", "2001:db8::1", "203.0.113.9"]
        );
    }

    #[test]
    fn a_wide_network_needs_several_clients() {
        let two = members(&["10.1.1.1", "10.1.200.1"]);
        assert_eq!(texts(&banned(&two, &[])), ["10.1.1.1", "10.1.200.1"]);
        let many: Vec<String> = (0..20).map(|number| format!("10.1.{}.1", number * 10)).collect();
        let many = members(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(texts(&banned(&many, &[])), ["10.1.0.0/16"]);
        // Never wider than /16.
        let apart: Vec<String> = (0..20).map(|number| format!("10.{number}.1.1")).collect();
        let apart = members(&apart.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(banned(&apart, &[]).len(), 20);
    }

    #[test]
    fn networks_hold_nine_tenths_of_the_requests() {
        let mut attackers = members(&["198.51.100.1", "203.0.113.9", "192.0.2.1"]);
        attackers[0].requests = 900;
        attackers[1].requests = 90;
        let named: Vec<String> = networks(&attackers, &[]).iter().map(|(network, ..)| plain(network)).collect();
        assert_eq!(named, ["198.51.100.1"]);
        attackers[1].requests = 200;
        assert_eq!(networks(&attackers, &[]).len(), 2);
    }

    #[test]
    fn whatever_the_addresses_all_are_covered_and_no_user_is() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut addresses = |count: usize| -> Vec<IpAddr> {
                (0..count).map(|_| IpAddr::from([10, 0, random.u8(0..4), random.u8(..)])).collect()
            };
            let users = addresses(15);
            let attackers: Vec<Member> = addresses(120)
                .into_iter()
                .filter(|address| !users.contains(address))
                .map(|address| Member { address, requests: 1 })
                .collect();
            let ban = banned(&attackers, &users);
            assert!(attackers.iter().all(|it| ban.iter().any(|network| network.contains(&it.address))), "{seed}");
            assert!(!users.iter().any(|user| ban.iter().any(|network| network.contains(user))), "{seed}");
            assert!(ban.len() < attackers.len(), "{seed}: {}", ban.len());
        }
    }

    #[test]
    fn the_kind_follows_from_accounts_and_clients() {
        for (attempts, accounts, clients, failed, kind) in [
            (200, 1, 1, 150, AttackKind::Guessing),
            (500, 30, 4, 30, AttackKind::Guessing),
            (1000, 400, 3, 900, AttackKind::Stuffing),
            (1000, 990, 3, 900, AttackKind::Stuffing),
            (1000, 990, 300, 900, AttackKind::Spraying),
            (0, 0, 3, 0, AttackKind::Flood),
            (0, 0, 3, 200, AttackKind::Guessing),
        ] {
            assert_eq!(AttackKind::of(attempts, accounts, clients, failed), kind, "{attempts} {accounts} {clients}");
        }
    }
}
