//! One limit and one key that an operator names, instead of all limits that a request meets.

use std::borrow::Cow;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::batch::{Force, Items};
use super::carried_sessions::account;
use super::{Batch, Charge, Policy};
use crate::rules::client::ClientIp;
use crate::rules::key::spec::InvalidKeyValues;
use crate::rules::key::{DisplayKey, Hashers, Key, KeyHash, KeyHasher, KeySpec, Selector, UserMark, spec};
use crate::rules::limit::{Count, InvalidRule, Limit, OnFailure, Rule};
use crate::words::units::{listed, nearest};

/// The charge of a request that has this key and meets only this limit.
#[derive(Clone, Debug)]
pub struct LimitQuery {
    pub limit: Arc<str>,
    /// The selectors of the key, without their values.
    pub selectors: Vec<String>,
    /// One key for each name that an application may take the values for. There is at least one.
    pub keys: SmallVec<[QueriedKey; 1]>,
    /// The address of the client, where that is a part of the key.
    pub client: Option<IpAddr>,
    /// With the cost that the operator gave.
    pub rule: Rule,
    pub shadow: bool,
    items: Items,
    count: Count,
    on_failure: OnFailure,
}

/// A key, and as operators may see it.
#[derive(Clone, Debug)]
pub struct QueriedKey {
    pub key: KeyHash,
    pub named: DisplayKey,
}

/// A selector, and its value.
type NamedValue<'v> = (Cow<'v, str>, Cow<'v, str>);

/// A mistake in a query.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidLimitQuery {
    #[error("there is no limit of that name{}", did_you_mean(.near.as_deref()))]
    NoSuchLimit { near: Option<String> },
    #[error("the key of this limit has no such part; {}{}", parts_of_key(.parts), did_you_mean(.near.as_deref()))]
    NoSuchPart { near: Option<String>, parts: Vec<String> },
    #[error("no value for {}; {}", listed(&borrowed(.missing)), parts_of_key(.parts))]
    Missing { missing: Vec<String>, parts: Vec<String> },
    #[error("several values for `{0}`: a key has one of each part")]
    Repeated(String),
    #[error("`client_ip` needs one IP address, without a prefix and without a port")]
    NotAnAddress,
    #[error("applications may take this value for too many names")]
    TooManyReadings,
    #[error("`user` needs the mark of an account, or what names it, with a blank between: {}", listed(&borrowed(.parts)))]
    NotAnAccount { parts: Vec<String> },
    #[error("{0}")]
    Cost(#[from] InvalidRule),
    #[error("this limit counts concurrent requests or different values, which cost 1 each")]
    NoCost,
}

impl LimitQuery {
    /// The limit of this name, and the key of these values: pairs of a selector and its value, in any order. A limit
    /// that counts different values may get one of them too; without it the empty value counts, as for a request that
    /// lacks it.
    ///
    /// `cost` replaces the cost of the limit.
    pub fn new(
        policy: &Policy,
        limit: &str,
        values: &[(Cow<'_, str>, Cow<'_, str>)],
        cost: Option<NonZeroU32>,
        Hashers { counted: hasher, shown }: &Hashers,
    ) -> Result<Self, InvalidLimitQuery> {
        let found = policy.limits.iter().find(|known| &*known.name == limit);
        let Some(found) = found else {
            let names: Vec<_> = policy.limits.iter().map(|known| &*known.name).collect();
            return Err(InvalidLimitQuery::NoSuchLimit { near: nearest(limit, &names).map(str::to_owned) });
        };
        let selectors: Vec<_> = found.key.parts.iter().map(|part| spec::name_of(&part.selector)).collect();
        let keeps_case = |name: &str| keeps_case(policy, found, name);
        let is_distinct =
            |name: &str| found.distinct.as_ref().is_some_and(|part| spec::is_called(&part.selector, name));
        let (distinct, values): (Vec<_>, Vec<_>) = values.iter().cloned().partition(|(name, _)| is_distinct(name));
        let distinct = with_marks(policy, distinct, hasher)?;
        let invalid = |error| match error {
            InvalidKeyValues::Unknown(name) => InvalidLimitQuery::NoSuchPart {
                near: nearest(&name, &borrowed(&selectors)).map(str::to_owned),
                parts: selectors.clone(),
            },
            InvalidKeyValues::Missing(missing) => InvalidLimitQuery::Missing { missing, parts: selectors.clone() },
            InvalidKeyValues::Repeated(name) => InvalidLimitQuery::Repeated(name),
            InvalidKeyValues::NotAnAddress => InvalidLimitQuery::NotAnAddress,
            InvalidKeyValues::TooManyReadings => InvalidLimitQuery::TooManyReadings,
        };
        let values = with_marks(policy, values, hasher)?;
        let keys = spec::keys(&found.key, &values, keeps_case).map_err(invalid)?;
        let queried = |key: &Key| QueriedKey {
            key: hasher.counted(&found.name, &found.key, key),
            named: DisplayKey::of(&found.key, key, shown),
        };
        let items = match &found.distinct {
            Some(part) if !distinct.is_empty() => {
                let spec = KeySpec { parts: vec![part.clone()], ..KeySpec::default() };
                spec::keys(&spec, &distinct, keeps_case).map_err(invalid)?
            }
            Some(_) => smallvec![empty()],
            None => SmallVec::new(),
        };
        let client = values.iter().find(|(name, _)| matches!(name.parse(), Ok(Selector::ClientIp(_))));
        Ok(Self {
            limit: Arc::clone(&found.name),
            client: client.and_then(|(_, value)| value.trim().parse().ok()).map(|ip| ClientIp::new(ip).address()),
            keys: keys.iter().map(queried).collect(),
            rule: with_cost(&found.rule, cost)?,
            shadow: found.shadow,
            items: items.iter().map(|item| hasher.item(item)).collect(),
            count: found.count,
            on_failure: found.on_failure,
            selectors,
        })
    }

    /// A charge for each of its keys, for a store.
    pub fn batch(&self) -> Batch<'_> {
        let charge = |queried: &QueriedKey| Charge {
            count: if matches!(self.rule, Rule::Concurrent(_)) { Count::Requests } else { self.count },
            force: if self.shadow { Force::Shadow } else { Force::Binding },
            on_failure: self.on_failure,
            items: self.items.clone(),
            ..Charge::new(0, queried.key, &self.rule)
        };
        Batch { charges: self.keys.iter().map(charge).collect(), ..Batch::default() }
    }

    /// Whether denied requests are charged too.
    pub fn counts_attempts(&self) -> bool {
        self.count == Count::Attempts
    }

    /// Whether a hit takes a concurrency slot, which is to be given back.
    pub fn is_in_flight(&self) -> bool {
        matches!(self.rule, Rule::Concurrent(_))
    }
}

/// These values, with user names replaced by the marks of their accounts.
fn with_marks<'v>(
    policy: &Policy,
    mut values: Vec<NamedValue<'v>>,
    hasher: &KeyHasher,
) -> Result<Vec<NamedValue<'v>>, InvalidLimitQuery> {
    for (_, value) in values.iter_mut().filter(|(name, _)| name.parse() == Ok(Selector::User)) {
        *value = Cow::Owned(user(policy, value, hasher)?);
    }
    Ok(values)
}

/// The mark of an account. `value` is the mark, or the values that name the account, as the first route with `sessions`
/// reads them, separated by blanks; the last value may contain blanks.
fn user(policy: &Policy, value: &str, hasher: &KeyHasher) -> Result<String, InvalidLimitQuery> {
    let is_mark = value.len() == UserMark::DIGITS && value.bytes().all(|digit| digit.is_ascii_hexdigit());
    let rule = policy.routes.all().iter().find_map(|route| route.sessions.as_ref());
    let Some(rule) = rule.filter(|_| !is_mark && !value.is_empty()) else { return Ok(value.to_ascii_lowercase()) };
    let names: Vec<_> = rule.of.parts.iter().map(|part| spec::name_of(&part.selector)).collect();
    let words = value.splitn(names.len(), ' ').map(Cow::Borrowed);
    let values: Vec<_> = names.iter().map(|name| Cow::Borrowed(name.as_str())).zip(words).collect();
    // No session is learned for a name with several readings.
    match spec::keys(&rule.of, &values, |_| false).as_deref() {
        Ok([key, ..]) => Ok(UserMark::of(account(key, hasher)).as_str().to_owned()),
        Ok([]) | Err(_) => Err(InvalidLimitQuery::NotAnAccount { parts: names }),
    }
}

/// The value that is counted for requests that lack it.
fn empty() -> Key {
    let mut key = Key::default();
    key.push(b"");
    key
}

/// Whether a route with this limit captures under this name with case.
fn keeps_case(policy: &Policy, limit: &Limit, name: &str) -> bool {
    let stands = |ids: &[crate::rules::limit::LimitId]| ids.iter().any(|&id| policy.limit(id).name == limit.name);
    let routes = policy.routes.all().iter().filter(|route| stands(&route.limits));
    routes.filter_map(|route| route.condition.captures_cased(name)).any(|cased| cased)
}

fn with_cost(rule: &Rule, asked: Option<NonZeroU32>) -> Result<Rule, InvalidLimitQuery> {
    let mut rule = rule.clone();
    if let Some(asked) = asked {
        match &mut rule {
            Rule::Rates { cost, .. } => *cost = asked,
            Rule::Concurrent(_) | Rule::Distinct(_) if asked == NonZeroU32::MIN => {}
            Rule::Concurrent(_) | Rule::Distinct(_) => return Err(InvalidLimitQuery::NoCost),
        }
        rule.check()?;
    }
    Ok(rule)
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

fn parts_of_key(parts: &[String]) -> String {
    match parts {
        [] => "its key has no parts, and takes no value".to_owned(),
        [only] => format!("its key is `{only}`"),
        several => format!("its key is {}", listed(&borrowed(several))),
    }
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}
