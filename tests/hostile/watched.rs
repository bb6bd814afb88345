//! A gateway in front of an application that keeps every byte: what arrived, and whether the gateway logged it.

use std::collections::HashMap;

use serde_json::Value;

use crate::strict;
use crate::strict::{Arrival, Rest};
use crate::support::{Answer, Gateway, Origin, eventually};

/// The two, and how much of what the application got was looked at.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) gateway: Gateway,
    pub(crate) origin: Origin,
    seen: Vec<usize>,
    arrivals: Vec<Arrival>,
    /// The id and the status of each answer that a client got.
    answers: Vec<(String, u16)>,
}

/// What the application got since it was last looked at.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) whole: Vec<Arrival>,
    /// Bytes behind the last whole request of a connection, most of it a head.
    pub(crate) cut_short: Vec<Vec<u8>>,
}

impl Watched {
    /// The application says to each request what its target was.
    pub(crate) fn start(server: &str) -> Self {
        let origin = Origin::answering(|received| match received.method.as_str() {
            "HEAD" => Answer::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", received.target.len())),
            _ => Answer::ok(&received.target),
        });
        let gateway = Gateway::start(format!("upstream: {}\nserver: {server}", origin.url()));
        Self { gateway, origin, seen: Vec::new(), arrivals: Vec::new(), answers: Vec::new() }
    }

    /// Whether the newest bytes of some connection are these.
    pub(crate) fn has_arrived(&self, bytes: &[u8]) -> bool {
        let looked_at = self.seen.iter().copied().chain(std::iter::repeat(0));
        self.origin.streams().iter().zip(looked_at).any(|(stream, seen)| stream[seen..].ends_with(bytes))
    }

    /// What arrived since, each piece of it read strictly.
    #[track_caller]
    pub(crate) fn news(&mut self, of: &str) -> News {
        let mut news = News::default();
        let streams = self.origin.streams();
        self.seen.resize(streams.len(), 0);
        for (stream, seen) in streams.iter().zip(&mut self.seen) {
            let (whole, rest) = strict::requests(&stream[*seen..]);
            news.whole.extend(whole);
            match rest {
                Rest::Nothing => {}
                Rest::CutShort(start) => news.cut_short.push(start),
                Rest::Malformed(what) => panic!("{of}: the application got {what}"),
            }
            *seen = stream.len();
        }
        self.arrivals.extend(news.whole.iter().cloned());
        news
    }

    /// Takes note of an answer that a client got, and that [`Self::were_logged`] looks for in the log.
    pub(crate) fn note_answer(&mut self, id: &str, status: u16) {
        self.answers.push((id.to_owned(), status));
    }

    /// Checks that every answer, a refusal too, was logged once under the id that its client got.
    #[track_caller]
    pub(crate) fn were_logged(&self) {
        let mut logged: HashMap<String, Vec<Value>> = HashMap::new();
        eventually("every answer is logged", || {
            logged.clear();
            for line in self.log() {
                logged.entry(id_of(&line)).or_default().push(line["status"].clone());
            }
            self.answers.iter().all(|(id, _)| logged.contains_key(id))
        });
        for (id, status) in &self.answers {
            assert_eq!(logged[id], [Value::from(*status)], "{id}");
        }
    }

    /// Checks that the gateway decided on every request that arrived exactly once, and logged it as it arrived.
    #[track_caller]
    pub(crate) fn were_decided_on(&self) {
        let mut arrived = HashMap::new();
        for arrival in &self.arrivals {
            let id = arrival.one("x-request-id").to_owned();
            assert!(arrived.insert(id, arrival).is_none(), "twice: {}", arrival.shape());
        }
        let mut told = HashMap::new();
        eventually("every request is logged", || {
            told = self.log().into_iter().map(|line| (id_of(&line), line)).collect();
            arrived.keys().all(|id| told.contains_key(id))
        });
        for (id, arrival) in arrived {
            let line = &told[&id];
            let path = arrival.target.split('?').next().unwrap_or_default();
            assert_eq!(line["method"], *arrival.method, "{line}");
            assert_eq!(line["host"], *arrival.one("host"), "{line}");
            assert_eq!(line["path"], *path, "{line}");
            assert_eq!(line["bytes_in"], arrival.body.len(), "{line}");
            assert_eq!(line["decision"], "allowed", "{line}");
            assert_eq!(arrival.one("x-forwarded-for"), "127.0.0.1");
            assert_eq!(arrival.one("x-real-ip"), "127.0.0.1");
            assert_eq!(arrival.one("x-forwarded-proto"), "http");
            assert_eq!(arrival.one("x-forwarded-host"), arrival.one("host"));
        }
    }

    /// The access log.
    pub(crate) fn log(&self) -> Vec<Value> {
        self.gateway.stdout().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

fn id_of(line: &Value) -> String {
    line["request_id"].as_str().unwrap_or_default().to_owned()
}
