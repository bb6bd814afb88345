//! Asks all gateways what they know.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::writing::{KEPT, PRESENCE};
use crate::store::redis::{Question, RecordsUnavailable};
use crate::store::shared_records::{Presence, SharedRecords, Standing};
use crate::words::clock::Timestamp;

/// The records of another gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewayRecords {
    pub gateway: String,
    pub standing: Standing,
    /// How long ago it wrote anything, by the clock of Redis.
    pub age: Duration,
    /// The content of each field that was asked for. `None`: it has not written that, or it cannot be opened.
    pub contents: Vec<Option<Vec<u8>>>,
}

/// A question that was published, by this gateway or another one.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: u64,
    at: Instant,
}

/// A gateway and what it has said of itself.
struct KnownGateway {
    name: String,
    presence: Presence,
    standing: Standing,
}

impl SharedRecords {
    /// Asks all gateways, and returns these fields of each other one that was here within the last hour. `id` is a request
    /// whose story is wanted. Takes a little more than [`PATIENCE`] at most.
    pub async fn ask(&self, fields: &[String], id: Option<&str>) -> Result<Vec<GatewayRecords>, RecordsUnavailable> {
        let asked = match id {
            Some(_) => self.publish(id).await?,
            None => self.share_question().await?,
        };
        let names = self.others().await?;
        let known = self.wait_for_answers(&names, asked).await?;
        self.read(&known, fields).await
    }

    /// What others have written already of this field.
    pub async fn find(&self, field: &str) -> Result<Option<Vec<u8>>, RecordsUnavailable> {
        let names = self.others().await?;
        let found = self.link.read(&names, &[field.to_owned()]).await?;
        let sealed = names.iter().zip(found).filter_map(|(name, mut contents)| Some((name, contents.pop()??)));
        Ok(sealed.into_iter().find_map(|(name, sealed)| self.open(name, field, &sealed)))
    }

    /// What each other gateway has written already of this field. Nobody is asked, so it may be some seconds old.
    pub async fn find_all(&self, field: &str) -> Result<Vec<Vec<u8>>, RecordsUnavailable> {
        let names = self.others().await?;
        let found = self.link.read(&names, &[field.to_owned()]).await?;
        let sealed = names.iter().zip(found).filter_map(|(name, mut contents)| Some((name, contents.pop()??)));
        Ok(sealed.filter_map(|(name, sealed)| self.open(name, field, &sealed)).collect())
    }

    /// The names of the others.
    async fn others(&self) -> Result<Vec<String>, RecordsUnavailable> {
        let now = self.now().await?;
        let mut names = self.link.gateways(now, KEPT).await?;
        names.retain(|name| **name != *self.gateway);
        Ok(names)
    }

    /// A question that was published after this call began. Those who ask at the same time share it, on any gateway, and
    /// there are a few in a second at most: each makes every gateway write.
    async fn share_question(&self) -> Result<Option<Asked>, RecordsUnavailable> {
        let arrived = Instant::now();
        let is_recent = |&(_, at): &(u64, Instant)| at > arrived;
        let mut last = self.last_question.lock().await;
        if let Some((number, at)) = last.filter(is_recent) {
            return Ok(Some(Asked { number, at }));
        }
        let before = last.iter().chain(&self.questions().last()).map(|(_, at)| *at).max();
        if let Some(before) = before {
            sleep_until(before + QUESTION_PACE).await;
        }
        if let Some((number, at)) = self.questions().last().filter(is_recent) {
            return Ok(Some(Asked { number, at }));
        }
        let asked = self.publish(None).await?;
        *last = asked.map(|asked| (asked.number, asked.at));
        Ok(asked)
    }

    /// `None`: this gateway may not publish.
    async fn publish(&self, id: Option<&str>) -> Result<Option<Asked>, RecordsUnavailable> {
        let question = Question::new(id);
        let asked = Asked { number: question.number, at: Instant::now() };
        Ok(self.link.publish(&question.to_message()).await?.then_some(asked))
    }

    /// Reads what gateways say of themselves until all have answered that are not known to be gone.
    async fn wait_for_answers(
        &self,
        names: &[String],
        asked: Option<Asked>,
    ) -> Result<Vec<KnownGateway>, RecordsUnavailable> {
        let (began, now) = (Instant::now(), self.now().await?);
        let deadline = asked.map_or(began, |asked| asked.at + PATIENCE);
        let mut pause = FIRST_PAUSE;
        loop {
            let known = self.look(names, asked, now + began.elapsed()).await?;
            let is_awaited = known.iter().any(|gateway| gateway.standing == Standing::Missing);
            if !is_awaited || Instant::now() >= deadline {
                let is_silent = |gateway: &&KnownGateway| {
                    matches!(gateway.standing, Standing::Missing | Standing::Gone) && gateway.presence.listens
                };
                if asked.is_some() {
                    self.silent.note(known.iter().filter(is_silent).map(|gateway| &*gateway.name), now);
                }
                return Ok(known);
            }
            sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// How each gateway stands to the question now. Those of which nothing can be read are left out.
    async fn look(
        &self,
        names: &[String],
        asked: Option<Asked>,
        now: Timestamp,
    ) -> Result<Vec<KnownGateway>, RecordsUnavailable> {
        let found = self.link.read(names, &[PRESENCE.to_owned()]).await?;
        let known = names.iter().zip(found).filter_map(|(name, mut contents)| {
            let presence = Presence::from_bytes(&self.open(name, PRESENCE, &contents.pop()??)?)?;
            let silent_for = self.silent.silent_for(name, &presence, now);
            let standing = presence.standing(now, asked.map(|asked| asked.number), silent_for);
            Some(KnownGateway { name: name.clone(), presence, standing })
        });
        Ok(known.collect())
    }

    async fn read(&self, known: &[KnownGateway], fields: &[String]) -> Result<Vec<GatewayRecords>, RecordsUnavailable> {
        let names: Vec<String> = known.iter().map(|gateway| gateway.name.clone()).collect();
        let found = self.link.read(&names, fields).await?;
        let now = self.now().await?;
        let records = known.iter().zip(found).map(|(KnownGateway { name, presence, standing }, contents)| {
            let open = |(field, sealed): (&String, Option<Vec<u8>>)| self.open(name, field, &sealed?);
            GatewayRecords {
                gateway: name.clone(),
                standing: *standing,
                age: now.since(presence.written),
                contents: fields.iter().zip(contents).map(open).collect(),
            }
        });
        Ok(records.collect())
    }
}

/// How long an answer is awaited.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

/// The shortest time between two questions that any may share.
const QUESTION_PACE: Duration = Duration::from_millis(250);

/// The pauses between looks for answers.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

const LONGEST_PAUSE: Duration = Duration::from_millis(40);
