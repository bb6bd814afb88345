//! Builders: a policy, a request and its decision in one line each.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::StatusCode;
use portcullis::rules::client::{ClientIp, Prefix};
use portcullis::rules::decision::descriptors::{DescriptorCall, DescriptorStatus, InvalidCall};
use portcullis::rules::decision::explain::{Asker, ExplainedTokens, Explanation, explain};
use portcullis::rules::decision::known_client::DeviceKeys;
use portcullis::rules::decision::policy::{Access, PolicyList};
use portcullis::rules::decision::{
    CarriedSessions, Decision, DenialCause, LimitReport, Penalty, PendingOutcome, PendingSignIn, Policy, RateReport,
    Settlement, enter,
};
use portcullis::rules::key::{KeyHash, KeyHasher, KeyPart, KeySpec, Spelling};
use portcullis::rules::limit::action::DenyResponse as Response;
use portcullis::rules::limit::{Count, DenyResponse, DescriptorFilter, Limit, LimitId, Rule, Then};
use portcullis::rules::list::{List, ListId, Members, network};
use portcullis::rules::outcome::OutcomeRule;
use portcullis::rules::request::{BodyFields, CanonicalHead};
use portcullis::rules::route::{Case, Condition, Route, RouteTable, SessionCarriers, UpstreamId};
use portcullis::store::memory::MemorySettings;
use portcullis::store::{MemoryStore, Store};
use portcullis::wire::head;
use portcullis::wire::head::FieldName;
use portcullis::words::clock::{Clock, ManualClock, Timestamp};
use portcullis::words::signing::KeyRing;

/// The rules of one test, and what was counted under them.
pub(crate) struct World {
    pub(crate) policy: Policy,
    pub(crate) clock: ManualClock,
    /// Keys that are banned for so long.
    pub(crate) bans: HashMap<KeyHash, Duration>,
    /// How many requests were decided.
    asked: Cell<u64>,
    store: MemoryStore,
}

/// What became of one request.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) passes: bool,
    pub(crate) cause: Option<DenialCause>,
    /// The names of the limits that deny.
    pub(crate) denied_by: Vec<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) decided_by: Option<String>,
    pub(crate) route: Option<String>,
    pub(crate) upstream: Option<UpstreamId>,
    pub(crate) status: Option<StatusCode>,
    pub(crate) reports: Vec<LimitReport>,
    /// The rate whose state is shown.
    pub(crate) closest: Option<RateReport>,
    pub(crate) slots: Vec<KeyHash>,
    pub(crate) charges: usize,
    /// What the store was asked to charge.
    pub(crate) charged: Vec<KeyHash>,
    /// For how long it is held, and by which limit, before it is forwarded.
    pub(crate) delay: Option<(String, Duration)>,
    pub(crate) penalty: Penalty,
    /// The keys whose ban begins.
    pub(crate) new_bans: Vec<KeyHash>,
    pub(crate) pending: Option<Box<PendingOutcome>>,
}

/// A request to be asked about.
#[derive(Debug)]
pub(crate) struct Ask {
    head: head::RequestHead,
    from: IpAddr,
    body: String,
    whole: bool,
}

pub(crate) fn world() -> World {
    world_of(Policy {
        lists: Vec::new(),
        access: Access::default(),
        client_prefix: Prefix::default(),
        limits: Vec::new(),
        everywhere: Vec::new(),
        routes: RouteTable::default(),
        upstream: UpstreamId(0),
        deny_response: DenyResponse::default(),
        channels: Vec::new(),
        session_carriers: SessionCarriers::default(),
    })
}

/// A world with these rules.
pub(crate) fn world_of(policy: Policy) -> World {
    let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
    World {
        asked: Cell::new(0),
        policy,
        bans: HashMap::new(),
        store: MemoryStore::new(
            &MemorySettings { max_keys: 10_000, max_sessions: 1000, snapshot: None },
            Clock::Manual(clock.clone()),
        ),
        clock,
    }
}

/// A limit of requests by `key`: selectors with spaces between them, none for one key for all.
pub(crate) fn limit(name: &str, key: &str, rate: &str) -> Limit {
    let part = |text: &str| KeyPart { selector: text.parse().unwrap(), spelling: Spelling::Usual };
    Limit {
        name: name.into(),
        key: KeySpec { parts: key.split_whitespace().map(part).collect(), ..KeySpec::default() },
        missing: portcullis::rules::limit::Missing::Count,
        rule: Rule::Rates {
            algorithm: portcullis::rules::limit::Algorithm::SlidingWindowLog,
            rates: rate.parse().unwrap(),
            cost: 1.try_into().unwrap(),
        },
        count: Count::Requests,
        distinct: None,
        reset_on: None,
        then: Then::default(),
        shadow: false,
        unless: Vec::new(),
        unless_known: false,
        descriptors: DescriptorFilter::default(),
        headers: portcullis::rules::limit::Detail::Full,
        on_failure: portcullis::rules::limit::OnFailure::Local,
        leases: true,
    }
}

pub(crate) fn concurrent(name: &str, key: &str, most: u32) -> Limit {
    Limit { rule: Rule::Concurrent(most.try_into().unwrap()), ..limit(name, key, "1/second") }
}

pub(crate) fn with_status(status: u16) -> Response {
    Response { status: Some(StatusCode::from_u16(status).unwrap()), ..Response::default() }
}

/// A request line, then header lines.
pub(crate) fn ask(request: &str) -> Ask {
    let mut lines = request.lines().map(str::trim);
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let mut head = head::RequestHead::to(method.parse().unwrap(), target).unwrap();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap();
        head.fields.append(&name.parse::<FieldName>().unwrap(), value.trim().as_bytes());
    }
    head.set_host("www.example.com");
    Ask { head, from: [192, 0, 2, 1].into(), body: String::new(), whole: true }
}

/// A form sent to a path by POST.
pub(crate) fn form(path: &str, body: &str) -> Ask {
    ask(&format!("POST {path}\nContent-Type: application/x-www-form-urlencoded")).body(body)
}

impl Ask {
    pub(crate) fn from(self, address: &str) -> Self {
        Self { from: address.parse().unwrap(), ..self }
    }

    /// For another host.
    pub(crate) fn at(mut self, host: &str) -> Self {
        self.head.set_host(host);
        self
    }

    pub(crate) fn body(self, body: &str) -> Self {
        Self { body: body.to_owned(), ..self }
    }

    /// Of which the gateway does not read the end.
    pub(crate) fn cut_short(self) -> Self {
        Self { whole: false, ..self }
    }

    fn head(&self) -> CanonicalHead<'_> {
        CanonicalHead::read(&self.head, ClientIp::new(self.from))
    }

    fn fields(&self) -> BodyFields {
        if self.body.is_empty() {
            BodyFields::none()
        } else {
            BodyFields::read(&self.head.fields, &self.body.clone().into(), self.whole, 65536)
        }
    }
}

impl World {
    pub(crate) fn list(&mut self, name: &str, networks: &[&str]) -> ListId {
        let members = Members::Addresses(networks.iter().map(|text| network(text).unwrap()).collect());
        self.any_list(PolicyList { list: List { name: name.into(), members }, of: None })
    }

    pub(crate) fn list_of(&mut self, selector: &str, name: &str, values: &[&str]) -> ListId {
        let part = KeyPart { selector: selector.parse().unwrap(), spelling: Spelling::Usual };
        let members = Members::Values(values.iter().flat_map(|value| part.as_compared(value).unwrap()).collect());
        self.any_list(PolicyList { list: List { name: name.into(), members }, of: Some(part) })
    }

    fn any_list(&mut self, list: PolicyList) -> ListId {
        self.policy.lists.push(list);
        ListId(u16::try_from(self.policy.lists.len() - 1).unwrap())
    }

    fn limit(&mut self, limit: Limit) -> LimitId {
        let at = self.policy.limits.iter().position(|known| known.name == limit.name).unwrap_or_else(|| {
            self.policy.limits.push(limit);
            self.policy.limits.len() - 1
        });
        LimitId(u16::try_from(at).unwrap())
    }

    pub(crate) fn everywhere(&mut self, limit: Limit) {
        let id = self.limit(limit);
        self.policy.everywhere.push(id);
    }

    /// A route named after its match.
    pub(crate) fn route(&mut self, short: &str, limits: Vec<Limit>) -> &mut Route {
        self.route_where(short, Condition::short(short, Case::Ignored).unwrap(), limits)
    }

    pub(crate) fn route_where(&mut self, name: &str, condition: Condition, limits: Vec<Limit>) -> &mut Route {
        let limits = limits.into_iter().map(|limit| self.limit(limit)).collect();
        let upstream = UpstreamId(u16::try_from(self.policy.routes.all().len() + 1).unwrap());
        self.policy.routes.push(Route {
            name: name.into(),
            condition,
            domain: None,
            upstream,
            only: None,
            limits,
            outcome: None,
            known_clients: None,
            sessions: None,
            deny_response: None,
            denied: Vec::new(),
        })
    }

    /// A route of a domain, named after it.
    pub(crate) fn domain(&mut self, domain: &str, limits: Vec<Limit>) {
        self.route_where(domain, Condition::default(), limits);
        let mut routes = std::mem::take(&mut self.policy.routes).into_routes();
        let added = routes.iter_mut().find(|route| *route.name == *domain).unwrap();
        added.domain = Some(domain.into());
        self.policy.routes = RouteTable::new(routes);
    }

    /// Denies what meets the filter in a domain that has limits.
    pub(crate) fn deny_in_domain(&mut self, domain: &str, denied: DescriptorFilter) {
        let mut routes = std::mem::take(&mut self.policy.routes).into_routes();
        routes.iter_mut().find(|route| *route.name == *domain).unwrap().denied.push(denied);
        self.policy.routes = RouteTable::new(routes);
    }

    /// What becomes of a call about descriptors, as the gateway asks for it.
    pub(crate) fn call(&self, call: &DescriptorCall) -> Result<(Decision, Vec<DescriptorStatus>), InvalidCall> {
        let met = call.meet(&self.policy, &KeyHasher::new([1; 16]))?;
        let mut plan = met.plan();
        plan.apply_bans(|key| self.bans.get(&key).copied());
        let verdicts = ready(self.store.decide(plan.batch())).unwrap();
        Ok((plan.conclude(&verdicts), plan.statuses(&verdicts)))
    }

    /// Whether a rule asks for the body of such a request.
    pub(crate) fn needs_body(&self, ask: &Ask) -> bool {
        enter(&self.policy, &ask.head()).needs_body()
    }

    pub(crate) fn explain(&self, ask: &Ask) -> Explanation {
        explain(
            &self.policy,
            &ask.head(),
            &ask.fields(),
            &ExplainedTokens::default(),
            Asker::Client,
            |UpstreamId(n)| format!("upstream-{n}"),
        )
    }

    /// The sessions that a request carries. `known` says whose they are.
    pub(crate) fn sessions(&self, ask: &Ask, known: &HashMap<KeyHash, KeyHash>, hasher: &KeyHasher) -> CarriedSessions {
        *CarriedSessions::read(&self.policy, &ask.head(), hasher, |session| known.get(&session).copied())
    }

    /// What waits for the answer to say whether somebody has signed in.
    pub(crate) fn sign_in(
        &self,
        ask: &Ask,
        known: &HashMap<KeyHash, KeyHash>,
        hasher: &KeyHasher,
    ) -> Option<Box<PendingSignIn>> {
        let (head, fields, sessions) = (ask.head(), ask.fields(), self.sessions(ask, known, hasher));
        let mut entry = enter(&self.policy, &head);
        entry.set_sessions(Some(&sessions));
        let plan = entry.plan(&fields, hasher);
        match plan.conclude(&[]) {
            Decision::Pass(mut pass) => pass.pending.take()?.sign_in,
            Decision::Deny(_) => None,
        }
    }

    /// Gives the route that was added last this outcome.
    pub(crate) fn outcome_of_last(&mut self, outcome: Option<Arc<OutcomeRule>>) {
        let mut routes = std::mem::take(&mut self.policy.routes).into_routes();
        routes.last_mut().expect("a route").outcome = outcome;
        self.policy.routes = RouteTable::new(routes);
    }

    /// Whether a request passes, its slots given back at once.
    #[track_caller]
    pub(crate) fn passes(&self, ask: &Ask) -> bool {
        let told = self.decide(ask);
        self.settle(&told.slots);
        told.passes
    }

    /// How many of `tries` such requests pass.
    #[track_caller]
    pub(crate) fn passing(&self, ask: &Ask, tries: usize) -> usize {
        (0..tries).filter(|_| self.passes(ask)).count()
    }

    /// What device cookies are signed with.
    pub(crate) fn key_ring(&self) -> Arc<KeyRing> {
        self.store.key_ring().load_for_signing(self.clock.now())
    }

    pub(crate) fn settle(&self, slots: &[KeyHash]) {
        let settlements: Vec<_> = slots.iter().copied().map(Settlement::Release).collect();
        ready(self.store.settle(&settlements)).unwrap();
    }

    /// What becomes of a request, as the gateway asks for it.
    pub(crate) fn decide(&self, ask: &Ask) -> Told {
        let head = ask.head();
        let key_ring = self.key_ring();
        let device_keys = DeviceKeys { ring: &key_ring, now: self.clock.now() };
        let mut entry = enter(&self.policy, &head);
        entry.set_device_keys(Some(device_keys));
        let fields = if entry.needs_body() { ask.fields() } else { BodyFields::none() };
        self.asked.set(self.asked.get() + 1);
        entry.set_nonce(self.asked.get());
        let mut plan = entry.plan(&fields, &KeyHasher::new([1; 16]));
        let left = |key| self.bans.get(&key).copied();
        let is_known = plan
            .known_client_check(left)
            .is_some_and(|doubt| ready(self.store.look(&doubt)).unwrap().iter().all(|verdict| verdict.is_exempt));
        plan.apply_bans(is_known, left);
        let keys: Vec<_> = plan.batch().charges.iter().map(|charge| charge.key).collect();
        let charges = keys.len();
        let verdicts = if charges == 0 { Vec::new() } else { ready(self.store.decide(plan.batch())).unwrap() };
        let name = |id: LimitId| self.policy.limit(id).name.to_string();
        match plan.conclude(&verdicts) {
            Decision::Pass(mut pass) => Told {
                passes: true,
                cause: None,
                denied_by: Vec::new(),
                retry_after: None,
                decided_by: None,
                route: pass.route.map(|id| self.policy.routes.get(id).name.to_string()),
                upstream: Some(pass.upstream),
                status: None,
                reports: pass.report.limits.to_vec(),
                closest: pass.report.closest,
                slots: pass.slots.to_vec(),
                charges,
                charged: keys,
                delay: pass.delay.map(|(limit, span)| (name(limit), span)),
                penalty: Penalty::None,
                new_bans: Vec::new(),
                pending: pass.pending.take(),
            },
            Decision::Deny(denial) => {
                let (denied_by, retry_after) = match &denial.cause {
                    DenialCause::Limited { limits, retry_after } => {
                        (limits.iter().copied().map(name).collect(), *retry_after)
                    }
                    _ => (Vec::new(), None),
                };
                Told {
                    passes: false,
                    denied_by,
                    retry_after,
                    decided_by: denial.limit.map(name),
                    route: denial.route.map(|id| self.policy.routes.get(id).name.to_string()),
                    upstream: None,
                    status: denial.response(&self.policy).status,
                    reports: denial.report.limits.to_vec(),
                    closest: denial.report.closest,
                    slots: denial.slots.to_vec(),
                    charges,
                    charged: keys,
                    delay: None,
                    penalty: denial.penalty,
                    new_bans: denial.new_bans.iter().map(|trip| trip.key).collect(),
                    pending: denial.pending.clone(),
                    cause: Some(denial.cause.clone()),
                }
            }
        }
    }
}

/// The memory store never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waits for nothing"),
    }
}

pub(crate) fn listed(list: &str) -> DenialCause {
    DenialCause::Listed { list: Arc::from(list) }
}
