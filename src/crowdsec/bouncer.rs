//! Reads the decisions of a Local API as a bouncer.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::task;
use tokio::time::timeout;

use super::DecisionStream;
use super::Lapi;
use super::LapiError;
use super::Secret;
use super::bounded_reader::BoundedReader;
use crate::http_client::root_cause;

/// A bouncer of a Local API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bouncer {
    pub lapi: Lapi,
    pub key: Secret,
}

/// Between two frames of an answer.
const FRAME_TIMEOUT: Duration = Duration::from_secs(10);

/// For a whole answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);

/// How many frames wait for the parser.
const MOST_FRAMES: usize = 4;

impl Bouncer {
    /// Asks for all decisions in force.
    pub async fn all_decisions(&self) -> Result<DecisionStream, LapiError> {
        self.poll("/v1/decisions/stream?startup=true", true).await
    }

    /// Asks for what has changed since the last answer to this key. After a failure nobody knows whether the API counts that
    /// one as answered: all decisions must be asked for then.
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
