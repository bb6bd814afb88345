//! What of this gateway is in Redis already.

use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::time::Duration;

use tokio::time::Instant;

use super::field::Field;
use super::presence::Presence;
use super::presence::SIGN_OF_LIFE_EVERY;

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
    pub(super) fn is_sign_of_life_due(&self) -> bool {
        is_due(self.spoke, SIGN_OF_LIFE_EVERY)
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

/// How often a registration is renewed.
pub(super) const REGISTERED_EVERY: Duration = Duration::from_secs(20 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, content: &str) -> Field {
        Field { name: name.to_owned(), content: content.as_bytes().to_vec() }
    }

    #[test]
    fn only_what_has_changed_is_to_be_written() {
        let mut written = WrittenFields::default();
        assert!(written.is_registration_due() && written.is_sign_of_life_due());
        assert_eq!(written.new_among(&[field("a", "1"), field("b", "1")]), 2);
        written.note(vec![field("a", "1")]);
        written.note_registration();
        assert!(written.has(&field("a", "1")) && !written.has(&field("a", "2")) && !written.has(&field("b", "1")));
        assert_eq!(written.new_among(&[field("a", "2"), field("b", "1")]), 1);
        assert!(!written.is_registration_due() && !written.is_sign_of_life_due());
        written.remove(&["a".to_owned()]);
        assert!(!written.has(&field("a", "1")));
        written.presence.answer(&[7]);
        written.forget();
        assert!(written.is_registration_due() && written.presence.answered.contains(&7));
    }
}
