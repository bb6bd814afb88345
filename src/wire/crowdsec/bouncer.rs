//! Reads the decisions of a Local API as a bouncer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use ipnet::IpNet;
use tokio::sync::mpsc;
use tokio::task;
use tokio::time::timeout;

use super::{Decision, DecisionStream, DecisionType, Lapi, LapiError, Secret, Subject};
use crate::wire::crowdsec::decision_stream::{BoundedReader, MOST};
use crate::wire::http_client::root_cause;
use crate::words::clock::Timestamp;

/// Between two frames of an answer.
const FRAME_TIMEOUT: Duration = Duration::from_secs(10);

/// For a whole answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);

/// How many frames wait for the parser.
const MOST_FRAMES: usize = 4;

/// A bouncer of a Local API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bouncer {
    pub lapi: Lapi,
    pub key: Secret,
}

impl Bouncer {
    /// Asks for all decisions in force.
    pub async fn all_decisions(&self) -> Result<DecisionStream, LapiError> {
        self.poll("/v1/decisions/stream?startup=true", true).await
    }

    /// Asks for the changes since the last answer to this key. After a failure it is unknown whether the API counts the
    /// question as answered: then ask for all decisions.
    pub async fn changed_decisions(&self) -> Result<DecisionStream, LapiError> {
        self.poll("/v1/decisions/stream", false).await
    }

    async fn poll(&self, path: &str, is_from_start: bool) -> Result<DecisionStream, LapiError> {
        let key = Some(("x-api-key", self.key.header()));
        let mut body = self.lapi.send(Method::GET, path, key, Bytes::new()).await?.into_body();
        let (frames, waiting) = mpsc::channel(MOST_FRAMES);
        // A long answer takes a while to parse, and this thread has others to serve.
        let parsing = task::spawn_blocking(move || DecisionStream::read(BoundedReader::new(waiting), is_from_start));
        let received = timeout(BODY_TIMEOUT, receive(&mut body, frames)).await;
        received.map_err(|_| LapiError::Timeout(BODY_TIMEOUT))??;
        let parsed = parsing.await.map_err(|error| LapiError::Malformed(error.to_string()))?;
        parsed.map_err(|error| LapiError::Malformed(error.to_string()))
    }
}

/// Hands the frames of a body to the parser, until the body ends or the parser has seen enough.
async fn receive(body: &mut Incoming, frames: mpsc::Sender<Bytes>) -> Result<(), LapiError> {
    loop {
        let frame = timeout(FRAME_TIMEOUT, body.frame()).await.map_err(|_| LapiError::Timeout(FRAME_TIMEOUT))?;
        let Some(frame) = frame else { return Ok(()) };
        let frame = frame.map_err(|error| LapiError::Malformed(root_cause(&error).to_string()))?;
        if let Ok(data) = frame.into_data()
            && frames.send(data).await.is_err()
        {
            return Ok(());
        }
    }
}

// The decisions that are in force, as far as the API has told.

/// When each known decision ends.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KnownDecisions {
    ends: HashMap<Subject, Timestamp>,
}

impl KnownDecisions {
    /// Applies an answer of the API: first the deleted decisions, then the new ones. An answer from the start replaces
    /// all known decisions.
    pub fn apply(&mut self, answer: &DecisionStream, now: Timestamp) {
        if answer.is_from_start {
            self.ends.clear();
        }
        for subject in &answer.deleted {
            self.ends.remove(subject);
        }
        // A later answer is the API's last word on a subject. Within one answer the longest decision counts.
        let mut new: Vec<&Decision> = answer.new.iter().collect();
        new.sort_unstable_by_key(|decision| decision.left);
        for Decision { subject, left } in new {
            if self.ends.len() < MOST || self.ends.contains_key(subject) {
                self.ends.insert(*subject, now + *left);
            }
        }
        self.remove_ended(now);
    }

    /// Forgets decisions that have ended. Returns whether there were any.
    pub fn remove_ended(&mut self, now: Timestamp) -> bool {
        let before = self.ends.len();
        self.ends.retain(|_, end| *end > now);
        if self.ends.capacity() > 4 * self.ends.len() {
            self.ends.shrink_to(2 * self.ends.len());
        }
        self.ends.len() < before
    }

    /// When the first of them ends.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.ends.values().min().copied()
    }

    /// The networks that decisions of this type are about.
    pub fn networks(&self, decision_type: DecisionType) -> impl Iterator<Item = IpNet> {
        let of_type = self.ends.keys().filter(move |subject| subject.decision_type == decision_type);
        of_type.map(|subject| subject.network)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

// A list that follows the decisions of a Local API.

/// Where the members of a list come from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListSource {
    /// The name of the list.
    pub list: Arc<str>,
    pub bouncer: Bouncer,
    /// From one answer to the next question.
    pub every: Duration,
}

impl ListSource {
    /// `every` where the configuration leaves it out.
    pub const EVERY: Duration = Duration::from_secs(10);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::crowdsec::decision::Scope;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn subject(last: u8) -> Subject {
        let network = IpNet::new([198, 51, 100, last].into(), 32).unwrap();
        Subject { scope: Scope::Ip, decision_type: DecisionType::Ban, network }
    }

    fn answer(deleted: &[u8], new: &[(u8, u64)]) -> DecisionStream {
        let decision = |&(last, seconds)| Decision { subject: subject(last), left: Duration::from_secs(seconds) };
        DecisionStream {
            deleted: deleted.iter().copied().map(subject).collect(),
            new: new.iter().map(decision).collect(),
            ..DecisionStream::default()
        }
    }

    #[test]
    fn deleted_comes_before_new_and_is_known_by_its_subject() {
        let mut known = KnownDecisions::default();
        known.apply(&answer(&[1], &[(1, 60), (2, 60)]), NOW);
        assert_eq!(known.len(), 2);
        known.apply(&answer(&[1, 2], &[(1, 60)]), NOW);
        assert_eq!(known.networks(DecisionType::Ban).collect::<Vec<_>>(), [subject(1).network]);
        let range = Subject { scope: Scope::Range, ..subject(1) };
        known.apply(&DecisionStream { deleted: vec![range], ..DecisionStream::default() }, NOW);
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn decisions_end_by_themselves() {
        let mut known = KnownDecisions::default();
        known.apply(&answer(&[], &[(1, 10), (2, 20), (3, 0)]), NOW);
        assert_eq!((known.len(), known.next_end()), (2, Some(NOW + Duration::from_secs(10))));
        assert!(!known.remove_ended(NOW + Duration::from_secs(9)));
        assert!(known.remove_ended(NOW + Duration::from_secs(10)));
        assert_eq!((known.len(), known.next_end()), (1, Some(NOW + Duration::from_secs(20))));
    }

    #[test]
    fn of_several_in_one_answer_the_longest_counts_and_a_later_answer_replaces_it() {
        let mut known = KnownDecisions::default();
        known.apply(&answer(&[], &[(1, 60), (1, 20)]), NOW);
        assert_eq!(known.next_end(), Some(NOW + Duration::from_secs(60)));
        known.apply(&answer(&[], &[(1, 30)]), NOW);
        assert_eq!(known.next_end(), Some(NOW + Duration::from_secs(30)));
    }

    #[test]
    fn an_answer_from_the_start_replaces_what_was_known() {
        let mut known = KnownDecisions::default();
        known.apply(&answer(&[], &[(1, 60), (2, 60)]), NOW);
        known.apply(&DecisionStream { is_from_start: true, ..answer(&[1, 3], &[(3, 60)]) }, NOW);
        assert_eq!(known.networks(DecisionType::Ban).collect::<Vec<_>>(), [subject(3).network]);
    }

    proptest! {
        /// Against a model that applies one change after another.
        #[test]
        fn any_history_comes_to_what_the_api_holds(
            answers in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(0..8_u8, 0..5), prop::collection::vec((0..8_u8, 0..50_u64), 0..5), 0..20_u64),
                0..20,
            ),
        ) {
            let (mut known, mut model, mut now) = (KnownDecisions::default(), BTreeMap::new(), NOW);
            for (is_from_start, deleted, new, pause) in answers {
                if is_from_start {
                    model.clear();
                }
                model.retain(|last, _| !deleted.contains(last));
                let mut told = BTreeMap::new();
                for &(last, seconds) in &new {
                    let end = told.entry(last).or_insert(now);
                    *end = (*end).max(now + Duration::from_secs(seconds));
                }
                model.extend(told);
                known.apply(&DecisionStream { is_from_start, ..answer(&deleted, &new) }, now);
                now = now + Duration::from_secs(pause);
                known.remove_ended(now);
                model.retain(|_, end| *end > now);
                let expected: BTreeMap<Subject, Timestamp> = model.iter().map(|(last, end)| (subject(*last), *end)).collect();
                prop_assert_eq!(known.ends.iter().map(|(subject, end)| (*subject, *end)).collect::<BTreeMap<_, _>>(), expected);
            }
        }
    }
}
