//! The open sessions of this process. They are in its memory alone, so that a restart ends them.

use std::fmt::Write;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::SessionPlace;
use crate::admin::Token;

/// Bounded in number and in time.
#[derive(Debug, Default)]
pub(in crate::admin) struct Sessions {
    open: Mutex<Vec<Session>>,
}

#[derive(Debug)]
struct Session {
    /// A hash: what is compared takes the same time whatever a client sends.
    id: Token,
    csrf_token: CsrfToken,
    place: SessionPlace,
    opened: Instant,
    used: Instant,
}

/// Which a page sends with each change, and which a page of another site cannot know.
#[derive(Clone)]
pub(in crate::admin) struct CsrfToken(String);

/// A session that was just opened.
pub(super) struct OpenedSession {
    /// The value of the cookie. Only a hash of it is kept.
    pub(super) id: String,
    pub(super) csrf_token: CsrfToken,
}

impl Sessions {
    /// Opens a session. Where there are too many, the one that was not used for the longest time ends.
    pub(super) fn open(&self, place: SessionPlace, now: Instant) -> OpenedSession {
        let (id, csrf_token) = (random_text(), CsrfToken(random_text()));
        let session = Session {
            id: Token::new(&id).expect("it is not empty"),
            csrf_token: csrf_token.clone(),
            place,
            opened: now,
            used: now,
        };
        let mut open = self.open.lock();
        open.retain(|session| session.is_open(now));
        if open.len() >= MAX_SESSIONS
            && let Some((oldest, _)) = open.iter().enumerate().min_by_key(|(_, session)| session.used)
        {
            open.swap_remove(oldest);
        }
        open.push(session);
        OpenedSession { id, csrf_token }
    }

    /// The token of the session with one of these ids. `None`: none of them is open at this place. Counts as a use.
    pub(in crate::admin) fn csrf_token(&self, ids: &[&str], place: &SessionPlace, now: Instant) -> Option<CsrfToken> {
        let mut open = self.open.lock();
        open.retain(|session| session.is_open(now));
        let session = open.iter_mut().find(|session| session.is_one_of(ids) && session.place == *place)?;
        session.used = now;
        Some(session.csrf_token.clone())
    }

    /// Ends the sessions with these ids.
    pub(super) fn end(&self, ids: &[&str]) {
        self.open.lock().retain(|session| !session.is_one_of(ids));
    }

    /// Ends all sessions: the token that opened them is not valid any more.
    pub(in crate::admin) fn end_all(&self) {
        self.open.lock().clear();
    }
}

impl Session {
    fn is_open(&self, now: Instant) -> bool {
        now.duration_since(self.opened) < LONGEST && now.duration_since(self.used) < LONGEST_UNUSED
    }

    fn is_one_of(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| self.id.matches(id.as_bytes()))
    }
}

impl CsrfToken {
    pub(in crate::admin) fn matches(&self, sent: &[u8]) -> bool {
        Token::new(&self.0).is_some_and(|token| token.matches(sent))
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl std::fmt::Debug for CsrfToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CsrfToken(***)")
    }
}

/// 256 random bits, as hexadecimal digits.
fn random_text() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// More than the operators of a site and their browsers.
const MAX_SESSIONS: usize = 64;

/// A page that is open uses its session every ten seconds.
const LONGEST_UNUSED: Duration = Duration::from_secs(3600);

/// A shift, and the handover to the next.
const LONGEST: Duration = Duration::from_secs(12 * 3600);

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;

    use super::*;

    fn place() -> SessionPlace {
        SessionPlace::of(&Request::new(Body::empty()))
    }

    #[test]
    fn a_session_is_found_by_its_id_until_it_ends() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let (one, two) = (sessions.open(place(), now), sessions.open(place(), now));
        let found = |id: &str| sessions.csrf_token(&["other", id], &place(), now).map(CsrfToken::into_text);
        assert_eq!(found(&one.id), Some(one.csrf_token.clone().into_text()));
        assert!(!one.csrf_token.matches(two.csrf_token.into_text().as_bytes()));
        assert_eq!(found(""), None);
        sessions.end(&[&one.id]);
        assert_eq!(found(&one.id), None);
        assert!(found(&two.id).is_some());
        sessions.end_all();
        assert_eq!(found(&two.id), None);
    }

    #[test]
    fn a_session_ends_when_it_is_unused_and_when_it_is_old() {
        let (sessions, begin) = (Sessions::default(), Instant::now());
        let id = sessions.open(place(), begin).id;
        let is_open_after = |span| sessions.csrf_token(&[&id], &place(), begin + span).is_some();
        let mut span = Duration::ZERO;
        while span + LONGEST_UNUSED / 2 < LONGEST {
            span += LONGEST_UNUSED / 2;
            assert!(is_open_after(span), "{span:?}");
        }
        assert!(!is_open_after(LONGEST));
        let unused = sessions.open(place(), begin).id;
        assert!(sessions.csrf_token(&[&unused], &place(), begin + LONGEST_UNUSED).is_none());
    }

    #[test]
    fn the_longest_unused_makes_room_for_another() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let at = |second| now + Duration::from_secs(second);
        let (used, unused) = (sessions.open(place(), at(0)).id, sessions.open(place(), at(1)).id);
        assert!(sessions.csrf_token(&[&used], &place(), at(2)).is_some());
        for _ in 2..=MAX_SESSIONS {
            sessions.open(place(), at(3));
        }
        assert!(sessions.csrf_token(&[&used], &place(), at(3)).is_some());
        assert!(sessions.csrf_token(&[&unused], &place(), at(3)).is_none());
        assert_eq!(sessions.open.lock().len(), MAX_SESSIONS);
    }
}
