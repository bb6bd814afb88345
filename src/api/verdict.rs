//! Whether all is well. Judged once, so that the dashboard, `portcullis status` and the metric say the same.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Advice, Certificate, Configuration, Fault, FollowedList, Gateway, GatewayState, InOutage, ReloadResult, Status,
    Store, Traffic, Upstream,
};
use crate::words::units::{counted, thousands};

/// With fewer denied requests or failed sign-ins in a minute nobody is attacked: people mistype.
const FEWEST: u64 = 20;

/// So many of a hundred requests are denied in an attack.
const DENIED_PERCENT: u64 = 5;

/// So many of a hundred sign-ins fail in an attack.
const FAILED_PERCENT: u64 = 80;

/// Of a certificate or of limits, in the sentence.
const NAMES_SHOWN: usize = 3;

/// Whether all is well, in one word and one sentence, and what it is made of.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Verdict {
    #[schema(inline)]
    pub level: Level,
    pub sentence: String,
    /// Everything that was judged.
    pub parts: Vec<VerdictPart>,
}

/// One thing that was judged.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct VerdictPart {
    /// `lockdown`, `sign-ins`, `requests`, `store`, `upstreams`, `configuration`, `gateways`, `lists`, `certificates`, `advice`, or
    /// what a fault is about.
    pub about: String,
    #[schema(inline)]
    pub level: Level,
    pub sentence: String,
}

/// The worst is the greatest.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    #[default]
    Well,
    /// Advice, or a gateway that did not answer in time: it may wait until the morning.
    Notice,
    /// A route is locked, or much is denied or fails.
    Attack,
    /// The store, a server, a reload, a certificate, a list, a gateway, or something else that does not work.
    Trouble,
}

impl Level {
    pub const ALL: [Self; 4] = [Self::Well, Self::Notice, Self::Attack, Self::Trouble];

    /// The word in the API and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Notice => "notice",
            Self::Attack => "attack",
            Self::Trouble => "trouble",
        }
    }
}

/// What the status does not say, and the verdict needs.
#[derive(Clone, Debug, Default)]
pub struct Denials {
    /// What locks a route for everyone now.
    pub locks: Vec<Lock>,
    /// The limit that denied most in the last minute, and how often.
    pub busiest_limit: Option<(String, u64)>,
}

/// A limit without a key, or a ban of its key, that lets no request pass.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lock {
    pub limit: String,
    /// The routes that have the limit; none: it stands on every request.
    pub routes: Vec<String>,
    pub by: LockedBy,
    /// Whole seconds until a request passes again, as far as that is known.
    pub seconds: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LockedBy {
    Limit,
    /// As many requests are under way as a limit on concurrent ones allows.
    Requests,
    Ban,
}

impl Verdict {
    pub fn of(status: &Status, denials: &Denials) -> Self {
        let mut parts: Vec<_> = denials.locks.iter().map(Lock::part).collect();
        parts.extend(status.last_minute.sign_ins());
        parts.push(status.last_minute.requests(denials.busiest_limit.as_ref()));
        parts.push(status.store.part());
        parts.push(upstreams(&status.upstreams));
        parts.push(status.configuration.part());
        parts.push(gateways(&status.gateways, status.complete));
        parts.extend(lists(&status.lists));
        parts.extend(certificates(&status.certificates));
        parts.extend(status.faults.iter().map(Fault::part));
        parts.push(advice(&status.advice));
        Self { level: parts.iter().map(|part| part.level).max().unwrap_or_default(), sentence: sentence(&parts), parts }
    }
}

/// What is wrong, trouble first and then the attack. Where nothing is: that, and what passed.
fn sentence(parts: &[VerdictPart]) -> String {
    let at = |level: Level| parts.iter().filter(move |part| part.level == level).map(|part| part.sentence.as_str());
    let mut said: Vec<&str> = at(Level::Trouble).collect();
    if at(Level::Attack).next().is_some() {
        said.push("Under attack:");
        said.extend(at(Level::Attack));
    }
    if said.is_empty() {
        said.push("All is well.");
        let requests = parts.iter().find(|part| part.about == "requests").map(|part| part.sentence.as_str());
        said.extend(at(Level::Notice).next().is_none().then_some(requests).flatten());
        said.extend(at(Level::Notice));
    }
    said.join(" ")
}

fn part(about: &str, level: Level, sentence: impl Into<String>) -> VerdictPart {
    VerdictPart { about: about.to_owned(), level, sentence: sentence.into() }
}

impl Lock {
    fn part(&self) -> VerdictPart {
        let Self { limit, routes, by, seconds } = self;
        let what = match by {
            LockedBy::Limit | LockedBy::Requests => format!("The limit {limit} locks"),
            LockedBy::Ban => format!("A ban of the limit {limit} locks"),
        };
        let routes = match &routes[..] {
            [] => "every route".to_owned(),
            [route] => format!("the route {route}"),
            several => format!("the routes {}", several.join(", ")),
        };
        let seconds = usize::try_from(*seconds).unwrap_or(usize::MAX);
        let until = match by {
            LockedBy::Requests => ", until one of the requests under way ends".to_owned(),
            LockedBy::Limit | LockedBy::Ban if seconds == 0 => String::new(),
            LockedBy::Limit | LockedBy::Ban => format!(", for {}", counted(seconds, "more second")),
        };
        part("lockdown", Level::Attack, format!("{what} {routes} for everyone, also with the right password{until}."))
    }
}

impl Traffic {
    /// `None`: nobody tried to sign in.
    fn sign_ins(self) -> Option<VerdictPart> {
        let Self { signed_in, failed, .. } = self;
        let all = signed_in.saturating_add(failed);
        let is_attack = failed >= FEWEST && is_share(failed, all, FAILED_PERCENT);
        let level = if is_attack { Level::Attack } else { Level::Well };
        let sentence = format!("{} of {} failed in the last minute.", thousands(failed), numbered(all, "sign-in"));
        (all > 0).then(|| part("sign-ins", level, sentence))
    }

    fn requests(self, busiest_limit: Option<&(String, u64)>) -> VerdictPart {
        let Self { passed, denied, errors, .. } = self;
        let all = passed.saturating_add(denied);
        if all == 0 && errors == 0 {
            return part("requests", Level::Well, "No request came in the last minute.");
        }
        let verb = if denied == 1 { "was" } else { "were" };
        let (passed, denied_too) = (numbered(passed, "request"), format!("{} {verb} denied", thousands(denied)));
        let counts = match errors {
            0 => format!("{passed} passed and {denied_too} in the last minute."),
            _ => {
                format!("{passed} passed, {denied_too} and {} ended in an error in the last minute.", thousands(errors))
            }
        };
        if denied < FEWEST || !is_share(denied, all, DENIED_PERCENT) {
            return part("requests", Level::Well, counts);
        }
        let by = busiest_limit.map(|(limit, count)| format!(" Most by the limit {limit}: {}.", thousands(*count)));
        part("requests", Level::Attack, counts + &by.unwrap_or_default())
    }
}

fn is_share(some: u64, all: u64, percent: u64) -> bool {
    u128::from(some) * 100 >= u128::from(all) * u128::from(percent)
}

impl Store {
    fn part(&self) -> VerdictPart {
        if self.up {
            let sentence = if self.kind == "redis" { "Redis answers." } else { "This gateway counts in its memory." };
            return part("store", Level::Well, sentence);
        }
        let away: Vec<_> = self.away.iter().map(|away| format!("{}: {}", away.server, away.cause)).collect();
        let away = if away.is_empty() { String::new() } else { format!(" ({})", away.join("; ")) };
        let rule = self.shown_rule().map(|rule| format!(" Limits do as on_failure says: {rule}."));
        let without = self.part.filter(|part| *part <= 0.0).map(|_| " This gateway holds no part of any limit.");
        let sentence =
            format!("Redis does not answer{away}.{}{}", rule.unwrap_or_default(), without.unwrap_or_default());
        part("store", Level::Trouble, sentence)
    }

    /// What limits do while Redis is down, with their names where they do not all do the same. `None`: there are none.
    pub fn shown_rule(&self) -> Option<String> {
        let named = |InOutage { on_failure, limits }: &InOutage| format!("{on_failure} for {}", first_of(limits));
        match &self.in_outage[..] {
            [] => None,
            [all] => Some(all.on_failure.to_string()),
            several => Some(several.iter().map(named).collect::<Vec<_>>().join("; ")),
        }
    }
}

fn upstreams(upstreams: &[Upstream]) -> VerdictPart {
    let servers = || upstreams.iter().flat_map(|upstream| &upstream.servers);
    let all = servers().count();
    let ill: Vec<_> = servers().filter(|server| !server.healthy).map(|server| &*server.server).collect();
    let dead: Vec<_> = upstreams
        .iter()
        .filter(|upstream| !upstream.servers.is_empty() && upstream.servers.iter().all(|server| !server.healthy))
        .map(|upstream| &*upstream.name)
        .collect();
    match (all, ill.len(), dead.len()) {
        (0, ..) => part("upstreams", Level::Well, "No request is forwarded."),
        (1, 0, _) => part("upstreams", Level::Well, "The server is healthy."),
        (_, 0, _) => part("upstreams", Level::Well, format!("All {all} servers are healthy.")),
        (_, some, 0) => {
            let verb = if some == 1 { "is" } else { "are" };
            let sentence = format!("{some} of {all} servers {verb} not well: {}.", ill.join(", "));
            part("upstreams", Level::Trouble, sentence)
        }
        _ => part(
            "upstreams",
            Level::Trouble,
            format!("No server of {} is healthy: {}.", dead.join(", "), ill.join(", ")),
        ),
    }
}

impl Fault {
    fn part(&self) -> VerdictPart {
        part(&self.about, Level::Trouble, &*self.sentence)
    }
}

impl Configuration {
    fn part(&self) -> VerdictPart {
        let loaded = moment(&self.loaded);
        match &self.last_reload {
            Some(reload) if reload.result == ReloadResult::Failure => {
                let reason = reload.reason.as_deref().unwrap_or("no reason is known");
                let at = moment(&reload.at);
                let sentence = format!(
                    "The reload of {at} failed, the configuration of {loaded} stays in force: {}.",
                    reason.trim_end_matches('.')
                );
                part("configuration", Level::Trouble, sentence)
            }
            _ if self.waiting.is_empty() => part("configuration", Level::Well, format!("Loaded {loaded}.")),
            _ => {
                let sentence = format!("{}, the store that runs stays in force.", self.shown_waiting());
                part("configuration", Level::Notice, sentence)
            }
        }
    }

    /// `store.redis.url, store.nodes wait for the next start`.
    pub fn shown_waiting(&self) -> String {
        let verb = if self.waiting.len() == 1 { "waits" } else { "wait" };
        format!("{} {verb} for the next start", self.waiting.join(", "))
    }
}

fn gateways(gateways: &[Gateway], is_complete: bool) -> VerdictPart {
    let in_state = |state: GatewayState| gateways.iter().filter(move |gateway| gateway.state == state);
    // One that crashed and was started again has another id.
    let is_back =
        |gone: &&Gateway| in_state(GatewayState::Up).any(|up| up.name == gone.name && up.since > gone.last_seen);
    let last_heard = |gateway: &Gateway| {
        format!("{} was last heard of at {}", gateway.shown_among(gateways), moment(&gateway.last_seen))
    };
    let gone: Vec<_> = in_state(GatewayState::Gone).filter(|gone| !is_back(gone)).map(last_heard).collect();
    let back: Vec<_> = in_state(GatewayState::Gone).filter(is_back).map(last_heard).collect();
    let missing: Vec<_> = in_state(GatewayState::Missing).map(|gateway| gateway.shown_among(gateways)).collect();
    let up = in_state(GatewayState::Up).count();
    if !gone.is_empty() {
        return part("gateways", Level::Trouble, format!("{}. {} up.", gone.join("; "), counted(up, "gateway")));
    }
    if !missing.is_empty() {
        let verb = if missing.len() == 1 { "does" } else { "do" };
        let sentence = format!("{} {verb} not answer: what is counted there is missing.", missing.join(", "));
        return part("gateways", Level::Notice, sentence);
    }
    if !back.is_empty() {
        let sentence = format!("{}, did not say that it would end, and is back.", back.join("; "));
        return part("gateways", Level::Notice, sentence);
    }
    if !is_complete {
        let sentence = "Redis does not tell of other gateways: what is shown is of this one alone.";
        return part("gateways", Level::Notice, sentence);
    }
    let sentence = if up <= 1 { "This one alone.".to_owned() } else { format!("All {up} are up.") };
    part("gateways", Level::Well, sentence)
}

/// `None`: no list follows a source.
fn lists(lists: &[FollowedList]) -> Option<VerdictPart> {
    let known = |list: &FollowedList| format!("{} has {}", list.list, counted(list.entries, "decision"));
    let is_away = |list: &&FollowedList| !list.up && (list.reason.is_some() || list.answered.is_some());
    let away = lists.iter().filter(is_away).map(|list| {
        let reason = list.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{}{reason}; {}", list.source, known(list))
    });
    let away: Vec<_> = away.collect();
    if !away.is_empty() {
        return Some(part("lists", Level::Trouble, format!("Not answered by {}.", away.join("; "))));
    }
    let known: Vec<_> = lists.iter().map(known).collect();
    (!known.is_empty()).then(|| part("lists", Level::Well, format!("The sources answer: {}.", known.join(", "))))
}

/// `None`: there is none.
fn certificates(certificates: &[Certificate]) -> Option<VerdictPart> {
    let ending: Vec<_> = certificates.iter().filter(|one| one.ends_soon).map(Certificate::words).collect();
    if !ending.is_empty() {
        return Some(part("certificates", Level::Trouble, format!("To be renewed: {}.", ending.join("; "))));
    }
    let first = certificates.first()?;
    Some(part("certificates", Level::Well, format!("The first to be renewed: {}.", first.words())))
}

impl Certificate {
    fn words(&self) -> String {
        format!("{}, good until {}", self.shown_names(), moment(&self.expires))
    }

    pub fn shown_names(&self) -> String {
        first_of(&self.names)
    }
}

/// The first names, and how many more there are.
fn first_of(names: &[String]) -> String {
    let (shown, more) = names.split_at(names.len().min(NAMES_SHOWN));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{}{more}", shown.join(", "))
}

/// Warnings of `check` are listed beside it and are no notice. A refused reload, and settings that wait for a start, are said
/// already.
fn advice(advice: &[Advice]) -> VerdictPart {
    let of_kind = |wanted: fn(&str) -> bool| advice.iter().filter(|one| wanted(&one.kind)).count();
    let warnings = of_kind(|kind| kind == "check");
    match (of_kind(|kind| !["check", "reload_refused", "waits_for_start"].contains(&kind)), warnings) {
        (0, 0) => part("advice", Level::Well, "Nothing looks misconfigured."),
        (0, _) => part("advice", Level::Well, format!("`check` has {}: see the advice.", counted(warnings, "warning"))),
        (1, _) => part("advice", Level::Notice, "1 thing looks misconfigured: see the advice."),
        (more, _) => part("advice", Level::Notice, format!("{more} things look misconfigured: see the advice.")),
    }
}

/// `1,234 requests`.
fn numbered(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// `2026-11-28 09:56:22 UTC` of RFC 3339. What is of another form stays as it is.
fn moment(text: &str) -> String {
    match text.get(..19).and_then(|start| start.split_once('T')) {
        Some((date, time)) => format!("{date} {time} UTC"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{AwayServer, Reload, Server};
    use crate::rules::limit::OnFailure;

    fn well() -> Status {
        Status {
            verdict: Verdict::default(),
            version: "1".into(),
            since: "2026-11-28T08:00:00Z".into(),
            gateway: "one".into(),
            configuration: Configuration {
                source: "portcullis.yaml".into(),
                loaded: "2026-11-28T08:00:00.123Z".into(),
                waiting: Vec::new(),
                last_reload: None,
            },
            gateways: vec![gateway("one", GatewayState::Up)],
            complete: true,
            listeners: vec!["127.0.0.1:80".into()],
            certificates: Vec::new(),
            upstreams: vec![Upstream {
                name: "app".into(),
                servers: vec![
                    Server { server: "a:1".into(), healthy: true },
                    Server { server: "b:1".into(), healthy: true },
                ],
            }],
            lists: Vec::new(),
            store: Store {
                kind: "memory".into(),
                up: true,
                on_failure: None,
                in_outage: Vec::new(),
                part: None,
                away: Vec::new(),
            },
            faults: Vec::new(),
            last_minute: Traffic { passed: 9812, denied: 3, ..Traffic::default() },
            advice: Vec::new(),
        }
    }

    fn gateway(id: &str, state: GatewayState) -> Gateway {
        let moment = || "2026-11-28T08:00:00Z".to_owned();
        Gateway {
            name: id.into(),
            id: format!("{id}-3f2a90c4"),
            state,
            version: "1".into(),
            since: moment(),
            last_seen: moment(),
            last_minute: Traffic::default(),
        }
    }

    /// What the verdict is once a status was changed in this way.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Status, &mut Denials), level: Level, sentence: &str) {
        let (mut status, mut denials) = (well(), Denials::default());
        change(&mut status, &mut denials);
        let verdict = Verdict::of(&status, &denials);
        assert_eq!((verdict.level, &*verdict.sentence), (level, sentence));
        assert!(verdict.parts.iter().any(|part| part.level == level), "{verdict:?}");
    }

    #[test]
    fn all_is_well_where_little_is_denied() {
        let counts = "9,812 requests passed and 3 were denied in the last minute.";
        check(|_, _| (), Level::Well, &format!("All is well. {counts}"));
        let idle = "All is well. No request came in the last minute.";
        check(|status, _| status.last_minute = Traffic::default(), Level::Well, idle);
        let errors = |status: &mut Status, _: &mut Denials| {
            status.last_minute = Traffic { errors: 1200, ..Traffic::default() };
        };
        let words = "All is well. 0 requests passed, 0 were denied and 1,200 ended in an error in the last minute.";
        check(errors, Level::Well, words);
    }

    #[test]
    fn many_denied_and_a_share_of_all_are_an_attack() {
        let deny = |passed, denied| {
            move |status: &mut Status, denials: &mut Denials| {
                status.last_minute = Traffic { passed, denied, ..Traffic::default() };
                denials.busiest_limit = Some(("login".into(), denied));
            }
        };
        check(deny(0, 19), Level::Well, "All is well. 0 requests passed and 19 were denied in the last minute.");
        check(deny(400, 20), Level::Well, "All is well. 400 requests passed and 20 were denied in the last minute.");
        let words =
            "Under attack: 380 requests passed and 20 were denied in the last minute. Most by the limit login: 20.";
        check(deny(380, 20), Level::Attack, words);
    }

    #[test]
    fn sign_ins_that_fail_are_an_attack_although_nothing_is_denied() {
        let fail = |signed_in, failed| {
            move |status: &mut Status, _: &mut Denials| {
                status.last_minute = Traffic { passed: 100, signed_in, failed, ..Traffic::default() };
            }
        };
        let words = "All is well. 100 requests passed and 0 were denied in the last minute.";
        check(fail(0, 19), Level::Well, words);
        check(fail(6, 20), Level::Well, words);
        check(fail(5, 20), Level::Attack, "Under attack: 20 of 25 sign-ins failed in the last minute.");
    }

    #[test]
    fn a_lock_keeps_out_everyone_and_says_so() {
        let lock = |by, routes: &[&str], seconds| {
            let routes = routes.iter().map(|route| (*route).to_owned()).collect();
            move |_: &mut Status, denials: &mut Denials| {
                denials.locks = vec![Lock { limit: "lockdown".into(), routes, by, seconds }];
            }
        };
        let words = "Under attack: The limit lockdown locks the route login for everyone, also with the right password, \
                     for 42 more seconds.";
        check(lock(LockedBy::Limit, &["login"], 42), Level::Attack, words);
        let words = "Under attack: A ban of the limit lockdown locks the routes a, b for everyone, also with the right password.";
        check(lock(LockedBy::Ban, &["a", "b"], 0), Level::Attack, words);
        let words = "Under attack: The limit lockdown locks every route for everyone, also with the right password, for 1 more second.";
        check(lock(LockedBy::Limit, &[], 1), Level::Attack, words);
        let words = "Under attack: The limit lockdown locks the route a for everyone, also with the right password, until one of \
                     the requests under way ends.";
        check(lock(LockedBy::Requests, &["a"], 0), Level::Attack, words);
    }

    #[test]
    fn trouble_comes_first_and_an_attack_is_named_beside_it() {
        check(
            |status, _| {
                status.last_minute = Traffic { passed: 0, denied: 150, ..Traffic::default() };
                let away = vec![AwayServer { server: "r:1".into(), cause: "timeout".into() }];
                let on_failure = Some(OnFailure::Local);
                let in_outage = vec![in_outage(OnFailure::Local, &["pace"])];
                status.store = Store { kind: "redis".into(), up: false, on_failure, in_outage, part: Some(0.0), away };
                status.upstreams[0].servers[1].healthy = false;
            },
            Level::Trouble,
            "Redis does not answer (r:1: timeout). Limits do as on_failure says: local. This gateway holds no part of any \
             limit. 1 of 2 servers is not well: b:1. Under attack: 0 requests passed and 150 were denied in the last minute.",
        );
    }

    fn in_outage(on_failure: OnFailure, limits: &[&str]) -> InOutage {
        InOutage { on_failure, limits: limits.iter().map(|&name| name.into()).collect() }
    }

    #[test]
    fn what_limits_do_without_redis_is_said_of_those_that_there_are() {
        let store = |in_outage: Vec<InOutage>| {
            move |status: &mut Status, _: &mut Denials| {
                let (kind, on_failure, away) = ("redis".into(), Some(OnFailure::Local), Vec::new());
                status.store = Store { kind, up: false, on_failure, in_outage, part: None, away };
            }
        };
        check(store(Vec::new()), Level::Trouble, "Redis does not answer.");
        let deny = in_outage(OnFailure::Deny, &["pace"]);
        check(store(vec![deny.clone()]), Level::Trouble, "Redis does not answer. Limits do as on_failure says: deny.");
        let local = in_outage(OnFailure::Local, &["a", "b", "c", "d", "e"]);
        let words = "Redis does not answer. Limits do as on_failure says: local for a, b, c and 2 more; deny for pace.";
        check(store(vec![local, deny]), Level::Trouble, words);
    }

    #[test]
    fn what_waits_for_the_next_start_is_a_notice() {
        let wait = |keys: &[&str]| {
            let waiting = keys.iter().map(|&key| key.to_owned()).collect();
            move |status: &mut Status, _: &mut Denials| {
                status.configuration.waiting = waiting;
                let (message, since, help) = (String::new(), String::new(), String::new());
                let kind = "waits_for_start".into();
                status.advice = vec![Advice { kind, message, since, limit: None, route: None, help }];
            }
        };
        let words = "All is well. store.redis waits for the next start, the store that runs stays in force.";
        check(wait(&["store.redis"]), Level::Notice, words);
        let words =
            "All is well. store.redis.url, store.nodes wait for the next start, the store that runs stays in force.";
        check(wait(&["store.redis.url", "store.nodes"]), Level::Notice, words);
    }

    #[test]
    fn what_is_broken_is_trouble() {
        let fail = |status: &mut Status, _: &mut Denials| {
            let at = "2026-11-28T09:00:00Z".into();
            status.configuration.last_reload =
                Some(Reload { at, result: ReloadResult::Failure, reason: Some("1 mistake".into()) });
        };
        let words = "The reload of 2026-11-28 09:00:00 UTC failed, the configuration of 2026-11-28 08:00:00 UTC stays in force: \
                     1 mistake.";
        check(fail, Level::Trouble, words);
        let end = |status: &mut Status, _: &mut Denials| {
            let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
            status.certificates = vec![Certificate { names, expires: "2026-11-29T00:00:00Z".into(), ends_soon: true }];
        };
        check(end, Level::Trouble, "To be renewed: a, b, c and 1 more, good until 2026-11-29 00:00:00 UTC.");
        let list = |up, answered: Option<&str>, reason: Option<&str>| {
            let (answered, reason) = (answered.map(str::to_owned), reason.map(str::to_owned));
            move |status: &mut Status, _: &mut Denials| {
                status.lists = vec![FollowedList {
                    list: "l".into(),
                    source: "http://s".into(),
                    up,
                    entries: 1,
                    answered,
                    reason,
                }];
            }
        };
        check(
            list(false, None, Some("refused")),
            Level::Trouble,
            "Not answered by http://s (refused); l has 1 decision.",
        );
        let counts = "All is well. 9,812 requests passed and 3 were denied in the last minute.";
        check(list(false, None, None), Level::Well, counts);
        let gone = |status: &mut Status, _: &mut Denials| status.gateways.push(gateway("two", GatewayState::Gone));
        check(gone, Level::Trouble, "two was last heard of at 2026-11-28 08:00:00 UTC. 1 gateway up.");
        let back = |status: &mut Status, _: &mut Denials| {
            let before = gateway("one", GatewayState::Gone);
            status.gateways.push(Gateway { id: "one-0".into(), last_seen: "2026-11-28T07:59:58Z".into(), ..before });
            status.last_minute = Traffic { denied: 20, ..Traffic::default() };
        };
        let words = "Under attack: 0 requests passed and 20 were denied in the last minute.";
        check(back, Level::Attack, words);
        let dead = |status: &mut Status, _: &mut Denials| {
            status.upstreams[0].servers.iter_mut().for_each(|server| server.healthy = false);
        };
        check(dead, Level::Trouble, "No server of app is healthy: a:1, b:1.");
    }

    #[test]
    fn advice_about_traffic_is_a_notice_and_a_warning_is_none() {
        let advise = |kind: &'static str| {
            move |status: &mut Status, _: &mut Denials| {
                let (message, since, help) = (String::new(), String::new(), String::new());
                status.advice = vec![Advice { kind: kind.into(), message, since, limit: None, route: None, help }];
            }
        };
        check(advise("one_client"), Level::Notice, "All is well. 1 thing looks misconfigured: see the advice.");
        let counts = "All is well. 9,812 requests passed and 3 were denied in the last minute.";
        check(advise("check"), Level::Well, counts);
        let silent = |status: &mut Status, _: &mut Denials| status.gateways.push(gateway("two", GatewayState::Missing));
        check(silent, Level::Notice, "All is well. two does not answer: what is counted there is missing.");
    }
}
