//! Writes what has changed of this gateway.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::field::Field;
use super::field::MAX_FIELD;
use super::heard_questions::QuestionsToAnswer;
use super::records::SharedRecords;
use super::written_fields::WrittenFields;
use crate::clock::Timestamp;
use crate::store::redis::RecordsUnavailable;
use crate::store::redis::Registration;

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
        let is_due = is_registration_due || written.is_sign_of_life_due() || !listens;
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

/// The name of the field with the [`Presence`](super::presence::Presence).
pub(super) const PRESENCE: &str = "presence";

/// For how long others know of a gateway that has gone: an hour, and the time between two registrations, and the ten
/// minutes that a part of the history is about.
pub(super) const KEPT: Duration = Duration::from_secs(90 * 60);
