//! Finds requests that this gateway has forwarded and that come back to it, which would go round without end.

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::warn;

use crate::base64;
use crate::head::Fields;
use crate::head::KnownName;

/// Marks a request as forwarded by this process. The marks of other gateways stay: a loop may lead through them.
pub(super) fn mark(fields: &mut Fields) {
    fields.append(KnownName::PORTCULLIS_LOOP, MARK.as_bytes());
}

/// Whether this process has forwarded the request before. A client cannot write the mark unless its application shows it, and would
/// then refuse its own requests only.
pub fn has_passed(fields: &Fields) -> bool {
    fields.has(KnownName::PORTCULLIS_LOOP)
        && fields.get_all(KnownName::PORTCULLIS_LOOP).any(|mark| mark == MARK.as_bytes())
}

/// Says at intervals that requests come back.
pub fn log(fields: &Fields, peer: IpAddr) {
    static LOGGED: Mutex<Option<Instant>> = Mutex::new(None);
    let mut logged = LOGGED.lock();
    if logged.is_some_and(|logged| logged.elapsed() < LOG_INTERVAL) {
        return;
    }
    *logged = Some(Instant::now());
    let host = String::from_utf8_lossy(fields.get(KnownName::HOST).unwrap_or_default());
    warn!(
        %host,
        %peer,
        "a request came back to the gateway that has forwarded it, and is answered 508: the upstream of this host leads to the \
         gateway itself"
    );
}

/// Drawn at each start.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    base64::encode_url(&bytes)
});

/// Between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
