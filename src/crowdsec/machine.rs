//! Reports bans to a Local API as a machine.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::Method;
use http_body_util::BodyExt;
use http_body_util::Limited;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use tokio::time::timeout;

use super::Lapi;
use super::LapiError;
use super::Secret;
use super::alert::Alert;

/// A machine of a Local API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Machine {
    pub lapi: Lapi,
    /// The machine's name.
    pub login: String,
    pub password: Secret,
}

/// A machine that has logged in, or will.
#[derive(Debug)]
pub struct Reporter<'m> {
    machine: &'m Machine,
    /// Lasts an hour at most; the API says when it is over.
    token: Option<HeaderValue>,
}

/// The answer to a login.
#[derive(Deserialize)]
struct LoginAnswer {
    token: String,
}

/// For the body of an answer to a login.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A longer answer to a login is an error.
const MOST_BYTES: usize = 64 * 1024;

impl<'m> Reporter<'m> {
    pub fn new(machine: &'m Machine) -> Self {
        Self { machine, token: None }
    }

    /// Reports bans. Those that have ended are left out.
    pub async fn report(&mut self, alerts: &[Alert]) -> Result<(), LapiError> {
        let alerts: Vec<Value> = alerts.iter().filter_map(Alert::to_json).collect();
        if alerts.is_empty() {
            return Ok(());
        }
        self.send(Method::POST, "/v1/alerts", &Value::from(alerts)).await
    }

    /// Deletes what was reported with this alert.
    pub async fn delete(&mut self, alert: &Alert) -> Result<(), LapiError> {
        self.send(Method::DELETE, &format!("/v1/decisions?{}", alert.query()), &Value::Null).await
    }

    /// Logs in where it has to, once more where the login is over.
    async fn send(&mut self, method: Method, path: &str, json: &Value) -> Result<(), LapiError> {
        if let Some(token) = self.token.clone() {
            match self.send_with(token, method.clone(), path, json).await {
                Err(LapiError::Refused(_)) => self.token = None,
                other => return other,
            }
        }
        let token = self.log_in().await?;
        self.token = Some(token.clone());
        self.send_with(token, method, path, json).await
    }

    async fn send_with(&self, token: HeaderValue, method: Method, path: &str, json: &Value) -> Result<(), LapiError> {
        let json = if json.is_null() { Bytes::new() } else { Bytes::from(json.to_string()) };
        self.machine.lapi.send(method, path, Some(("authorization", token)), json).await.map(drop)
    }

    async fn log_in(&self) -> Result<HeaderValue, LapiError> {
        let Machine { lapi, login, password } = self.machine;
        let json = json!({"machine_id": login, "password": password.as_str(), "scenarios": []});
        let answer = lapi.send(Method::POST, "/v1/watchers/login", None, Bytes::from(json.to_string())).await?;
        let body = Limited::new(answer.into_body(), MOST_BYTES).collect();
        let body = timeout(BODY_TIMEOUT, body).await.map_err(|_| LapiError::Timeout(BODY_TIMEOUT))?;
        let malformed = || LapiError::Malformed("it names no token".to_owned());
        let body = body.map_err(|error| LapiError::Malformed(error.to_string()))?.to_bytes();
        let LoginAnswer { token } = serde_json::from_slice(&body).map_err(|_| malformed())?;
        let mut token = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| malformed())?;
        token.set_sensitive(true);
        Ok(token)
    }
}
