//! Writes what has changed of this gateway.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::store::redis::{QuestionsToAnswer, RecordsUnavailable, Registration};
use crate::store::shared_records::{
    Field, MAX_FIELD, Presence, SIGN_OF_LIFE_EVERY, SharedRecords, UNASKED_SIGN_OF_LIFE_EVERY,
};
use crate::words::clock::{Clock, Timestamp};

/// The name of the field with the [`Presence`].
pub(super) const PRESENCE: &str = "presence";

/// For how long others know of a gateway that has gone: an hour, and the time between two registrations, and the ten
/// minutes that a part of the history is about.
pub(super) const KEPT: Duration = Duration::from_secs(90 * 60);

impl SharedRecords {
    /// Waits until there is something to write at once: a question, or what Redis has lost.
    pub async fn write_requested(&self) {
        self.questions().heard().await;
    }

    /// The questions that the next write answers. To be taken before what is written is read.
    pub fn questions_to_answer(&self) -> QuestionsToAnswer {
        self.questions().take()
    }

    /// Whether Redis may have nothing of this gateway, so that all it knows is to be written and not only what has changed
    /// lately.
    pub async fn begins_anew(&self) -> Result<bool, RecordsUnavailable> {
        let mut written = self.written.lock().await;
        let valid_for = Some((self.link.connect().await?, self.key()));
        if written.valid_for == valid_for {
            return Ok(false);
        }
        written.forget();
        written.valid_for = valid_for;
        Ok(true)
    }

    /// Writes those of these fields that have changed, and answers these questions. Sends nothing where there is nothing
    /// new. A field of more than [`MAX_FIELD`] bytes is left out.
    pub async fn write(&self, fields: Vec<Field>, answered: &QuestionsToAnswer) -> Result<(), RecordsUnavailable> {
        let mut written = self.written.lock().await;
        let mut changed = fields;
        changed.retain(|field| field.content.len() <= MAX_FIELD && !written.has(field));
        let listens = self.link.hears_all();
        let is_registration_due = written.is_registration_due();
        let is_over = self.is_over.load(Ordering::Acquire);
        let is_same = listens == written.presence.listens && is_over == written.presence.is_over;
        let is_due = is_registration_due || written.is_sign_of_life_due(listens);
        if changed.is_empty() && answered.is_empty() && is_same && !is_due {
            return Ok(());
        }
        let now = if is_registration_due { self.ask_for_time().await? } else { self.now().await? };
        written.presence.answer(&answered.numbers);
        written.presence.written = now;
        written.presence.listens = listens;
        written.presence.is_over = is_over;
        changed.push(Field { name: PRESENCE.to_owned(), content: written.presence.to_bytes() });
        let sent = self.send(&mut written, changed, is_registration_due.then_some(now)).await;
        if sent.is_err() {
            written.forget();
        }
        sent
    }

    async fn send(
        &self,
        written: &mut WrittenFields,
        fields: Vec<Field>,
        registered: Option<Timestamp>,
    ) -> Result<(), RecordsUnavailable> {
        let sealed: Vec<(&str, Vec<u8>)> =
            fields.iter().map(|field| (&*field.name, self.seal(&field.name, &field.content))).collect();
        let registration = registered.map(|now| Registration { now, kept: KEPT });
        let (added, connection) = self.link.write(&self.gateway, &sealed, registration).await?;
        if registered.is_some() {
            written.note_registration();
        }
        let expected = written.new_among(&fields);
        written.note(fields);
        let is_lost = added > expected || written.valid_for.is_none_or(|(valid_for, _)| valid_for != connection);
        if is_lost {
            // Redis has lost its keys meanwhile: the next write begins anew.
            written.forget();
            self.questions().wake();
        }
        Ok(())
    }

    /// Removes fields of this gateway.
    pub async fn remove(&self, names: &[String]) -> Result<(), RecordsUnavailable> {
        let mut written = self.written.lock().await;
        self.link.remove(&self.gateway, names).await?;
        written.remove(names);
        Ok(())
    }

    /// From the next write on the others know that this gateway has ended in order.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

// What of this gateway is in Redis already.

/// How often a registration is renewed.
pub(super) const REGISTERED_EVERY: Duration = Duration::from_secs(20 * 60);

/// The fields that this gateway has written, as long as Redis is known to have them.
#[derive(Debug, Default)]
pub(super) struct WrittenFields {
    /// The number of the connection over which they were written, and the key under which they are encrypted.
    pub(super) valid_for: Option<(u64, [u8; 16])>,
    digests: HashMap<String, u64>,
    pub(super) presence: Presence,
    /// When the presence was written.
    spoke: Option<Instant>,
    registered: Option<Instant>,
}

impl WrittenFields {
    /// Forgets what was written: everything has to be written again.
    pub(super) fn forget(&mut self) {
        *self = Self { presence: std::mem::take(&mut self.presence), ..Self::default() };
    }

    pub(super) fn has(&self, Field { name, content }: &Field) -> bool {
        self.digests.get(name) == Some(&digest(content))
    }

    /// How many of these fields are new to the hash.
    pub(super) fn new_among(&self, fields: &[Field]) -> usize {
        fields.iter().filter(|field| !self.digests.contains_key(&field.name)).count()
    }

    pub(super) fn note(&mut self, fields: Vec<Field>) {
        self.spoke = Some(Instant::now());
        for Field { name, content } in fields {
            self.digests.insert(name, digest(&content));
        }
    }

    pub(super) fn note_registration(&mut self) {
        self.registered = Some(Instant::now());
    }

    pub(super) fn remove(&mut self, names: &[String]) {
        for name in names {
            self.digests.remove(name);
        }
    }

    /// Whether the presence has to be written though nothing else is new.
    pub(super) fn is_sign_of_life_due(&self, listens: bool) -> bool {
        is_due(self.spoke, if listens { SIGN_OF_LIFE_EVERY } else { UNASKED_SIGN_OF_LIFE_EVERY })
    }

    /// Whether the gateway has to be named in the set, and the expiry of its hash moved on.
    pub(super) fn is_registration_due(&self) -> bool {
        is_due(self.registered, REGISTERED_EVERY)
    }
}

fn is_due(last: Option<Instant>, every: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= every)
}

fn digest(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

// The clock of Redis, as far as this process knows it.

/// Continues the last time that Redis has told.
#[derive(Debug)]
pub(super) struct ServerClock {
    own: Clock,
    /// What Redis told, and what the clock of this process said then.
    told: Mutex<Option<(Timestamp, Timestamp)>>,
}

impl ServerClock {
    pub(super) fn new(own: Clock) -> Self {
        Self { own, told: Mutex::default() }
    }

    pub(super) fn set(&self, told: Timestamp) {
        *self.told.lock() = Some((told, self.own.now()));
    }

    /// `None`: Redis was not asked yet.
    pub(super) fn now(&self) -> Option<Timestamp> {
        let (told, then) = (*self.told.lock())?;
        Some(told + self.own.now().since(then))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::words::clock::ManualClock;

    #[test]
    fn the_time_of_the_server_goes_on_with_the_own_clock() {
        let own = ManualClock::at(Timestamp::from_micros(5_000_000));
        let clock = ServerClock::new(Clock::Manual(own.clone()));
        assert_eq!(clock.now(), None);
        clock.set(Timestamp::from_micros(900));
        own.advance(Duration::from_micros(50));
        assert_eq!(clock.now(), Some(Timestamp::from_micros(950)));
    }

    fn field(name: &str, content: &str) -> Field {
        Field { name: name.to_owned(), content: content.as_bytes().to_vec() }
    }

    #[test]
    fn only_what_has_changed_is_to_be_written() {
        let mut written = WrittenFields::default();
        assert!(written.is_registration_due() && written.is_sign_of_life_due(true));
        assert_eq!(written.new_among(&[field("a", "1"), field("b", "1")]), 2);
        written.note(vec![field("a", "1")]);
        written.note_registration();
        assert!(written.has(&field("a", "1")) && !written.has(&field("a", "2")) && !written.has(&field("b", "1")));
        assert_eq!(written.new_among(&[field("a", "2"), field("b", "1")]), 1);
        assert!(!written.is_registration_due() && !written.is_sign_of_life_due(false));
        written.remove(&["a".to_owned()]);
        assert!(!written.has(&field("a", "1")));
        written.presence.answer(&[7]);
        written.forget();
        assert!(written.is_registration_due() && written.presence.answered.contains(&7));
    }
}
