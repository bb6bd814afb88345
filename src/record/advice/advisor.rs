//! Keeps the advice that holds now.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::warn;

use super::finding::Finding;
use super::judgement::Judge;
use super::judgement::Subject;
use super::judgement::Verdict;
use super::kind::Advice;
use super::kind::AdviceKind;
use super::observed::Observed;
use crate::clock::Timestamp;

/// The advice that holds now. It is logged when it begins.
#[derive(Debug, Default)]
pub struct Advisor {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    advice: BTreeMap<Subject, Advice>,
    judge: Judge,
    /// When advice was logged last.
    logged: BTreeMap<Subject, Timestamp>,
    /// Advice that a reload may have interrupted: since when it held, and until when. What proxies ask about is seen anew after
    /// a reload.
    interrupted: BTreeMap<Subject, (Timestamp, Timestamp)>,
}

impl Advisor {
    /// The advice that holds, in the order of its kinds.
    pub fn advice(&self) -> Vec<Advice> {
        self.state.lock().advice.values().cloned().collect()
    }

    /// Judges what was counted so far. To be called every second.
    pub fn judge(&self, observed: &Observed, now: Timestamp) {
        for Advice { kind, message, limit, route, help, .. } in self.state.lock().judge(observed, now) {
            let (limit, route) = (limit.as_deref(), route.as_deref());
            warn!(advice = kind.as_str(), limit, route, help, "{message}; {help}");
        }
    }
}

impl State {
    /// Returns the advice that is to be logged.
    fn judge(&mut self, observed: &Observed, now: Timestamp) -> Vec<Advice> {
        self.forget_others(observed, now);
        let mut begun = Vec::new();
        for (subject, verdict) in self.judge.judge(observed) {
            match verdict {
                Verdict::Holds(finding) => begun.extend(self.begin(subject, finding, now)),
                Verdict::HoldsNot => drop(self.advice.remove(&subject)),
                Verdict::AsBefore => {}
            }
        }
        begun
    }

    /// Drops what was known of limits and routes that are not in force any more.
    fn forget_others(&mut self, observed: &Observed, now: Timestamp) {
        let limits: HashSet<&str> = observed.limits.iter().map(|limit| &*limit.name).collect();
        let unseen: HashSet<&str> = observed.unseen.iter().map(|route| &*route.name).collect();
        let routes: HashSet<&str> = observed.routes.iter().map(|route| &*route.name).collect();
        let is_in_force = |(kind, name): &Subject| match kind {
            AdviceKind::MissingField | AdviceKind::PatternMatchesNothing | AdviceKind::LimitNeverCounted => {
                limits.contains(&**name)
            }
            AdviceKind::OutcomeMatchesNeither => routes.contains(&**name),
            AdviceKind::AnswersUnseen => unseen.contains(&**name),
            AdviceKind::UntrustedForwarding
            | AdviceKind::OneClient
            | AdviceKind::KeysUnavailable
            | AdviceKind::ReloadRefused
            | AdviceKind::Check => true,
        };
        let interrupted = &mut self.interrupted;
        self.advice.retain(|subject, advice| {
            let stays = is_in_force(subject);
            if !stays && subject.0 == AdviceKind::AnswersUnseen {
                interrupted.insert(subject.clone(), (advice.since, now));
            }
            stays
        });
        interrupted.retain(|_, (_, until)| now.since(*until) < RESUMED_WITHIN);
        self.logged.retain(|subject, _| is_in_force(subject) || interrupted.contains_key(subject));
        self.judge.retain(is_in_force);
    }

    /// Begins advice, or renews it. Returns it where it is to be logged: where it comes and goes, once a day is enough.
    fn begin(&mut self, subject: Subject, Finding { message, help }: Finding, now: Timestamp) -> Option<Advice> {
        let (kind, name) = subject.clone();
        let (limit, route) = match kind {
            AdviceKind::MissingField | AdviceKind::PatternMatchesNothing | AdviceKind::LimitNeverCounted => {
                (Some(name), None)
            }
            AdviceKind::OutcomeMatchesNeither | AdviceKind::AnswersUnseen => (None, Some(name)),
            AdviceKind::UntrustedForwarding
            | AdviceKind::OneClient
            | AdviceKind::KeysUnavailable
            | AdviceKind::ReloadRefused
            | AdviceKind::Check => (None, None),
        };
        let resumed = self.interrupted.remove(&subject).map(|(since, _)| since);
        let known = self.advice.get(&subject).map(|known| known.since).or(resumed);
        let was_logged = self.logged.get(&subject).is_some_and(|logged| now.since(*logged) < SILENT_FOR);
        let is_to_be_logged = known.is_none() && !was_logged;
        let advice = Advice { kind, message, since: known.unwrap_or(now), limit, route, help };
        self.advice.insert(subject.clone(), advice.clone());
        if !is_to_be_logged {
            return None;
        }
        self.logged.insert(subject, now);
        Some(advice)
    }
}

/// As long as advice that was logged is not logged again.
const SILENT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Advice that ends and holds again so soon has held all the time.
const RESUMED_WITHIN: Duration = Duration::from_secs(10 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::advice::ObservedRoute;
    use crate::record::advice::UnseenRoute;

    #[test]
    fn advice_that_comes_and_goes_is_logged_once_a_day() {
        let mut state = State::default();
        let mut logged_at = |thousand: u64, neither: u64, hour: u64| {
            let route = ObservedRoute { name: "login".into(), answers: thousand * 1000, neither };
            let observed = Observed { routes: vec![route], ..Observed::default() };
            let now = Timestamp::from_micros(hour * 3_600_000_000);
            state.judge(&observed, now).len()
        };
        assert_eq!(logged_at(1, 600, 1), 1);
        assert_eq!(logged_at(2, 600, 2), 0);
        assert_eq!(logged_at(3, 1600, 3), 0);
        assert_eq!(logged_at(4, 1600, 4), 0);
        assert_eq!(logged_at(5, 2600, 26), 1);
    }

    #[test]
    fn what_a_reload_interrupts_has_held_all_the_time() {
        let mut state = State::default();
        let mut logged_at = |is_seen: bool, minute: u64| {
            let (name, concurrent) = ("login".to_owned(), vec!["few".to_owned()]);
            let route = UnseenRoute {
                name,
                waiting: Vec::new(),
                concurrent,
                knows_clients: false,
                learns_sessions: false,
                is_of_domain: false,
            };
            let observed = Observed { unseen: is_seen.then_some(route).into_iter().collect(), ..Observed::default() };
            let now = Timestamp::from_micros(minute * 60_000_000);
            let logged = state.judge(&observed, now).len();
            (logged, state.advice.values().map(|advice| advice.since.as_micros() / 60_000_000).collect::<Vec<_>>())
        };
        assert_eq!(logged_at(true, 1), (1, vec![1]));
        assert_eq!(logged_at(false, 2), (0, vec![]));
        assert_eq!(logged_at(true, 9), (0, vec![1]));
        // A reload more than a day later.
        assert_eq!(logged_at(false, 3000), (0, vec![]));
        assert_eq!(logged_at(true, 3009), (0, vec![1]));
        // It was mended, and is there again.
        assert_eq!(logged_at(false, 4000), (0, vec![]));
        assert_eq!(logged_at(false, 4010), (0, vec![]));
        assert_eq!(logged_at(true, 4020), (1, vec![4020]));
    }
}
