//! Admits requests: checks that the head is exactly one unambiguous request, and reads the start of the body.

pub mod framing;

use http::Version;
use memchr::memmem;
use smallvec::SmallVec;

use crate::gateway::body::RequestBody;
use crate::gateway::exchange::Exchange;
use crate::gateway::fault::BadRequest;
use crate::gateway::header_kind::SignificantHeaders;
use crate::gateway::headers::strip_connection;
use crate::gateway::snapshot::Snapshot;
use crate::listen::tls::TlsInfo;
use crate::listen::{Connection, InterimSender, OnUpgrade};
use crate::rules::client::device::PROOF_COOKIE;
use crate::wire::head::{Fields, KnownName};
use crate::words::pool::Pooled;

// Admits a request: checks that it is exactly one, and removes the fields that the rules must not read.

/// The proofs of work that a request brings.
#[derive(Debug, Default)]
pub struct Proofs(pub(super) SmallVec<[Box<str>; 1]>);

impl Proofs {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the proofs out of the request: the application does not get them.
    pub fn take(fields: &mut Fields) -> Self {
        Self(take(fields, PROOF_COOKIE))
    }
}

/// A request as it comes from its client, or as a proxy describes it.
#[derive(Debug)]
pub struct Arrival<'c> {
    pub exchange: Pooled<Exchange>,
    pub body: RequestBody,
    /// The connection of a client that may ask for another protocol.
    pub upgrade: Option<OnUpgrade>,
    /// The handshake of the client itself; `None`: without TLS, or only a proxy knows it.
    pub tls: Option<&'c TlsInfo>,
}

/// A request that passed the framing checks.
#[derive(Debug)]
pub struct Admitted {
    pub exchange: Pooled<Exchange>,
    pub body: RequestBody,
    pub proofs: Proofs,
    /// The connection of a client that asks for another protocol, and names that in `Connection`.
    pub upgrade: Option<OnUpgrade>,
}

/// Refuses ambiguous requests, and removes the fields that the application must not get.
pub fn admit(
    live: &Snapshot,
    connection: &Connection,
    arrival: Arrival<'_>,
) -> Result<Admitted, (Pooled<Exchange>, BadRequest)> {
    let Arrival { mut exchange, mut body, upgrade, tls } = arrival;
    let head = &mut exchange.facts.head;
    if let Err(bad_request) = framing::admit(head, connection, tls, &live.settings, body.announced_length()) {
        return Err((exchange, bad_request));
    }
    let Stripped { asks_for_upgrade, proofs } = strip(&mut head.fields, &live.significant_headers, live.challenges);
    if body.comes_on_demand() {
        // Reading it asks for it: as long as nothing has, a denial does not read the rest.
        body.expect_continue(InterimSender::default());
    } else if head.version >= Version::HTTP_11 && !body.is_empty() && head.fields.has(KnownName::EXPECT) {
        body.expect_continue(exchange.interim.clone());
    }
    Ok(Admitted { exchange, body, proofs, upgrade: upgrade.filter(|_| asks_for_upgrade) })
}

// Removes the fields of a head that neither the rules nor the application may read.

/// The values of removed headers that the gateway itself needs.
#[derive(Debug)]
pub struct Stripped {
    pub asks_for_upgrade: bool,
    pub proofs: Proofs,
}

/// Removes `Connection`, the headers that it names, and the proofs of work. `challenges` says whether any limit
/// challenges: if none does, cookies are not searched.
pub fn strip(fields: &mut Fields, significant_headers: &SignificantHeaders, challenges: bool) -> Stripped {
    let asks_for_upgrade = strip_connection(fields, |name| significant_headers.in_requests(name));
    let proofs = if challenges { Proofs::take(fields) } else { Proofs::default() };
    Stripped { asks_for_upgrade, proofs }
}

// Takes the gateway's own cookies out of a request, before rules and applications read it.

/// Browsers send one cookie; more values are only work.
const MOST: usize = 4;

/// Removes every cookie of this name, and returns the values of the first few.
pub fn take(fields: &mut Fields, name: &str) -> SmallVec<[Box<str>; 1]> {
    let mut taken = SmallVec::new();
    let may_be_there = |value: &[u8]| memmem::find(value, name.as_bytes()).is_some();
    if !fields.get_all(KnownName::COOKIE).any(may_be_there) {
        return taken;
    }
    let lines: SmallVec<[Vec<u8>; 2]> = fields.get_all(KnownName::COOKIE).map(<[u8]>::to_vec).collect();
    fields.remove(KnownName::COOKIE);
    for line in lines {
        let mut kept = Vec::with_capacity(line.len());
        for pair in line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii) {
            match value_of(pair, name) {
                Some(value) => {
                    if let Ok(value) = str::from_utf8(value)
                        && taken.len() < MOST
                    {
                        taken.push(value.into());
                    }
                }
                None if pair.is_empty() => {}
                None => {
                    if !kept.is_empty() {
                        kept.extend_from_slice(b"; ");
                    }
                    kept.extend_from_slice(pair);
                }
            }
        }
        if !kept.is_empty() {
            fields.append(KnownName::COOKIE, &kept);
        }
    }
    taken
}

fn value_of<'c>(pair: &'c [u8], name: &str) -> Option<&'c [u8]> {
    let equals = memchr::memchr(b'=', pair)?;
    let (named, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
    (named == name.as_bytes()).then_some(value)
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz {
    //! The fuzz target of this parser.

    use http::HeaderValue;

    use super::{MOST, take};
    use crate::wire::head::{Fields, KnownName};
    #[cfg(test)]
    use crate::words::corpus;

    /// Cookies of our name are gone afterwards, and all others are still there in their order.
    pub fn check(bytes: &[u8]) {
        let mut fields = Fields::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = HeaderValue::from_bytes(line) else { return };
            fields.append(KnownName::COOKIE, line.as_bytes().trim_ascii());
        }
        let before = others(&fields);
        let taken = take(&mut fields, NAME);
        assert!(taken.len() <= MOST, "{} cookies", taken.len());
        assert_eq!(others(&fields), before);
        assert!(take(&mut fields, NAME).is_empty(), "one was left");
    }

    /// Every pair that is not ours.
    fn others(fields: &Fields) -> Vec<Vec<u8>> {
        let lines = fields.get_all(KnownName::COOKIE);
        let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii));
        let is_ours = |pair: &[u8]| {
            let equals = pair.iter().position(|byte| *byte == b'=');
            equals.is_some_and(|equals| pair[..equals].trim_ascii() == NAME.as_bytes())
        };
        pairs.filter(|pair| !pair.is_empty() && !is_ours(pair)).map(<[u8]>::to_vec).collect()
    }

    const NAME: &str = "ours";

    #[cfg(test)]
    #[test]
    fn the_corpus_keeps_its_promises() {
        corpus::feed("cookies", check);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(lines: &[&'static str], taken: &[&str], left: &[&str]) {
        let mut fields = Fields::default();
        for line in lines {
            fields.append(KnownName::COOKIE, line.as_bytes());
        }
        let found = take(&mut fields, "ours");
        assert_eq!(found.iter().map(|value| &**value).collect::<Vec<_>>(), taken);
        let rest: Vec<_> = fields.get_all(KnownName::COOKIE).map(|line| str::from_utf8(line).unwrap()).collect();
        assert_eq!(rest, left);
    }

    #[test]
    fn our_cookie_is_removed_and_others_stay() {
        check(&[], &[], &[]);
        check(&["a=1;b=2"], &[], &["a=1;b=2"]);
        check(&["ours=x"], &["x"], &[]);
        check(&["a=1; ours=x.7; b=2"], &["x.7"], &["a=1; b=2"]);
        check(&["a=1", "ours=x", "b=ours"], &["x"], &["a=1", "b=ours"]);
        check(&["ours=1; ours = 2 ;;a"], &["1", "2"], &["a"]);
    }

    #[test]
    fn a_cookie_with_a_similar_name_stays() {
        check(&["yours=1; ours2=2; a=ours=3"], &[], &["yours=1; ours2=2; a=ours=3"]);
    }

    #[test]
    fn of_many_cookies_the_first_few_are_read_and_all_are_removed() {
        check(&["ours=1; ours=2; ours=3; ours=4; ours=5; ours=6"], &["1", "2", "3", "4"], &[]);
    }

    proptest! {
        #[test]
        fn no_cookie_of_ours_is_left_and_no_other_is_lost(line in "(ours|theirs|=|;| |x|,){0,12}") {
            let pairs = |line: &str| -> Vec<String> {
                line.split(';').map(|pair| pair.trim().to_owned()).filter(|pair| !pair.is_empty()).collect()
            };
            let mut fields = Fields::default();
            fields.append(KnownName::COOKIE, line.as_bytes());
            let taken = take(&mut fields, "ours");
            let left = fields.get(KnownName::COOKIE).map_or(Vec::new(), |line| pairs(str::from_utf8(line).expect("text")));
            let is_ours = |pair: &String| value_of(pair.as_bytes(), "ours").is_some();
            let (ours, others): (Vec<String>, Vec<String>) = pairs(&line).into_iter().partition(is_ours);
            prop_assert_eq!(left, others);
            prop_assert_eq!(taken.len(), ours.len().min(MOST));
        }
    }
}
