//! Requests to a Local API, each over a connection of its own.

use std::fmt;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, CONTENT_TYPE, USER_AGENT};
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::wire::crowdsec::ORIGIN;
use crate::wire::http_client::{HttpsClient, root_cause, verifying};
use crate::wire::tls::{CaCertificates, NoSystemRoots, system_roots};
use crate::words::clock;
use crate::words::clock::Timestamp;
use crate::words::word::Help;

/// From the name lookup to the head of the answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A longer head of an answer is an error.
const MAX_HEAD: usize = 16 * 1024;

/// A Local API: where it listens, and how it is verified.
#[derive(Clone, Debug)]
pub struct Lapi {
    pub url: LapiUrl,
    /// `None`: the system's certificates.
    pub ca: Option<CaCertificates>,
    client: Arc<OnceLock<HttpsClient>>,
}

/// Why a request to a Local API failed. Never shows a key or a password.
#[derive(Debug, thiserror::Error)]
pub enum LapiError {
    #[error("{0}")]
    NoSystemRoots(#[from] NoSystemRoots),
    #[error("{0}")]
    Unreachable(String),
    #[error("it did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// It does not know the key, or the password.
    #[error("it refuses the credentials ({0})")]
    Refused(StatusCode),
    #[error("it answered {0}")]
    Status(StatusCode),
    #[error("its answer cannot be read: {0}")]
    Malformed(String),
}

impl Lapi {
    pub fn new(url: LapiUrl, ca: Option<CaCertificates>) -> Self {
        Self { url, ca, client: Arc::default() }
    }

    /// Sends a request to a path that begins with `/v1/`, with a header field that proves who asks. Redirections are not
    /// followed.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        credentials: Option<(&'static str, HeaderValue)>,
        json: Bytes,
    ) -> Result<Response<Incoming>, LapiError> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.url.at(path))
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .header(CONNECTION, "close");
        if let Some((name, value)) = credentials {
            request = request.header(name, value);
        }
        if !json.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(json)).map_err(|error| LapiError::Unreachable(error.to_string()))?;
        let exchange = self.client()?.request(request);
        let answer = timeout(HEAD_TIMEOUT, exchange).await.map_err(|_| LapiError::Timeout(HEAD_TIMEOUT))?;
        let answer = answer.map_err(|error| LapiError::Unreachable(root_cause(&error).to_string()))?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(LapiError::Refused(status)),
            status => Err(LapiError::Status(status)),
        }
    }

    /// Made at the first request, because reading the system's certificates takes a while.
    fn client(&self) -> Result<&HttpsClient, NoSystemRoots> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let roots = match &self.ca {
            Some(ca) => ca.roots(),
            None if self.url.as_str().starts_with("https:") => system_roots()?,
            // Nothing is verified over plain http.
            None => rustls::RootCertStore::empty(),
        };
        Ok(self.client.get_or_init(|| verifying(roots, MAX_HEAD)))
    }
}

impl Eq for Lapi {}

impl PartialEq for Lapi {
    fn eq(&self, other: &Self) -> bool {
        (&self.url, &self.ca) == (&other.url, &other.ca)
    }
}

// Where a Local API listens.

/// The URL that the paths of the API are put behind.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LapiUrl(String);

/// Why a text is not the URL of a Local API. Never shows the text itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidLapiUrl {
    #[error("a Local API has an http:// or https:// URL")]
    NotHttp,
    #[error("the URL of a Local API has no user name or password")]
    Credentials,
    #[error("the URL of a Local API has no query")]
    Query,
}

impl Help for InvalidLapiUrl {
    fn help(&self) -> String {
        let help = match self {
            Self::NotHttp => "write where CrowdSec's Local API listens: `http://127.0.0.1:8080`",
            Self::Credentials => "remove it; the key or the password stands in a file of its own",
            Self::Query => "remove it",
        };
        help.to_owned()
    }
}

impl LapiUrl {
    pub fn parse(text: &str) -> Result<Self, InvalidLapiUrl> {
        let uri = text.trim().parse::<Uri>().map_err(|_| InvalidLapiUrl::NotHttp)?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidLapiUrl::Credentials);
        }
        let Some(scheme) = scheme.filter(|_| uri.host().is_some_and(|host| !host.is_empty())) else {
            return Err(InvalidLapiUrl::NotHttp);
        };
        if uri.query().is_some() || text.contains('#') {
            return Err(InvalidLapiUrl::Query);
        }
        if authority.ends_with(':') {
            return Err(InvalidLapiUrl::NotHttp);
        }
        // Every path of the API begins with its version, which a URL may name as well.
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path);
        Ok(Self(format!("{scheme}://{authority}{path}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of a path, which begins with `/v1/`.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl fmt::Display for LapiUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// A key or a password that is sent to the API and shown nowhere.

/// One line of visible ASCII.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Trims white space. `None`: nothing is left, or it has characters that no key and no password of `CrowdSec` has.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_visible = text.chars().all(|letter| letter.is_ascii_graphic() || letter == ' ');
        (!text.is_empty() && is_visible).then(|| Self(text.into()))
    }

    /// The secret itself, for a request and nothing else.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of a header field that debugging output masks.
    pub(super) fn header(&self) -> HeaderValue {
        let mut value = HeaderValue::from_str(self.as_str()).expect("visible ASCII");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

// Reports bans to a Local API as a machine.

/// For the body of an answer to a login.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A longer answer to a login is an error.
const MOST_BYTES: usize = 64 * 1024;

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

impl<'m> Reporter<'m> {
    pub fn new(machine: &'m Machine) -> Self {
        Self { machine, token: None }
    }

    /// Reports bans, except bans that have ended.
    pub async fn report(&mut self, alerts: &[Alert]) -> Result<(), LapiError> {
        let alerts: Vec<Value> = alerts.iter().filter_map(Alert::to_json).collect();
        if alerts.is_empty() {
            return Ok(());
        }
        self.send(Method::POST, "/v1/alerts", &Value::from(alerts)).await
    }

    /// Deletes the decisions of this alert.
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

// A ban as it is reported to a Local API: an alert with one decision.

/// A ban of an address or a range.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Alert {
    pub network: IpNet,
    /// Why it was banned: the name of a limit, or `operator`. With the network it identifies the decision, so that two limits may
    /// ban one address.
    pub cause: String,
    /// For people.
    pub message: String,
    pub until: Timestamp,
}

impl Alert {
    /// `None`: the ban has ended.
    pub(super) fn to_json(&self) -> Option<Value> {
        let now = clock::wall();
        let left = self.until.since(now);
        if left.is_zero() {
            return None;
        }
        let (scope, value, scenario, at) = (self.scope(), self.value(), self.scenario(), now.to_string());
        // The API counts the duration from `stop_at`.
        Some(json!({
            "capacity": 0, "events": [], "events_count": 1, "leakspeed": "0", "simulated": false,
            "message": self.message, "scenario": scenario, "scenario_hash": "", "scenario_version": "",
            "source": {"scope": scope, "value": value}, "start_at": at, "stop_at": at,
            "decisions": [{
                "duration": format!("{}ms", left.as_millis().max(1)),
                "origin": ORIGIN, "scenario": scenario, "scope": scope, "type": "ban", "value": value,
            }],
        }))
    }

    /// The query that selects its decision.
    pub(super) fn query(&self) -> String {
        let [scope, value, scenario] = [self.scope(), &self.value(), &self.scenario()].map(percent_encoded);
        format!("scopes={scope}&value={value}&type=ban&origin={ORIGIN}&scenario={scenario}")
    }

    fn is_address(&self) -> bool {
        self.network.prefix_len() == self.network.max_prefix_len()
    }

    fn scope(&self) -> &'static str {
        if self.is_address() { "Ip" } else { "Range" }
    }

    fn value(&self) -> String {
        if self.is_address() { self.network.addr().to_string() } else { self.network.to_string() }
    }

    fn scenario(&self) -> String {
        format!("{ORIGIN}/{}", self.cause)
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wire::crowdsec::decision;

    #[test]
    fn a_secret_is_trimmed_and_never_shown() {
        let secret = Secret::new(" s3cret\n").unwrap();
        assert_eq!(
            (secret.as_str(), &*format!("{secret:?} {:?}", secret.header())),
            ("s3cret", "Secret(***) Sensitive")
        );
    }

    #[test]
    fn what_cannot_be_a_key_is_none() {
        for text in ["", " \n", "two\nlines", "k\u{e9}y", "nul\0"] {
            assert_eq!(Secret::new(text), None, "{text:?}");
        }
    }

    fn alert(network: &str, left: Duration) -> Alert {
        let (cause, message) = ("login pace".to_owned(), "why".to_owned());
        Alert { network: network.parse().unwrap(), cause, message, until: clock::wall() + left }
    }

    #[test]
    fn an_alert_has_one_decision_of_our_own() {
        let json = alert("2001:db8::/64", Duration::from_secs(600)).to_json().unwrap();
        let decision = &json["decisions"][0];
        assert_eq!((&decision["scope"], &decision["value"]), (&json!("Range"), &json!("2001:db8::/64")));
        assert_eq!(
            (&decision["origin"], &decision["scenario"]),
            (&json!("portcullis"), &json!("portcullis/login pace"))
        );
        let duration = decision::parse_duration(decision["duration"].as_str().unwrap()).unwrap();
        assert!(duration <= Duration::from_secs(600) && duration > Duration::from_secs(590), "{duration:?}");
        assert_eq!(alert("198.51.100.7/32", Duration::ZERO).to_json(), None);
    }

    #[test]
    fn its_decision_is_found_by_scope_value_and_scenario() {
        assert_eq!(
            alert("198.51.100.7/32", Duration::ZERO).query(),
            "scopes=Ip&value=198.51.100.7&type=ban&origin=portcullis&scenario=portcullis%2Flogin%20pace"
        );
        assert!(alert("2001:db8::/64", Duration::ZERO).query().contains("scopes=Range&value=2001%3Adb8%3A%3A%2F64&"));
    }

    #[test]
    fn a_url_is_written_in_several_ways() {
        for (text, expected) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/decisions"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/decisions"),
            ("https://lapi.example.com/v1/", "https://lapi.example.com/v1/decisions"),
            (" http://[::1]:8080/crowdsec ", "http://[::1]:8080/crowdsec/v1/decisions"),
        ] {
            assert_eq!(LapiUrl::parse(text).unwrap().at("/v1/decisions"), expected);
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in ["", "127.0.0.1:8080", "ftp://h/", "unix:/run/crowdsec.sock", "http://", "http://h:/"] {
            assert_eq!(LapiUrl::parse(text), Err(InvalidLapiUrl::NotHttp), "{text}");
        }
        assert_eq!(LapiUrl::parse("http://u:p@h"), Err(InvalidLapiUrl::Credentials));
        assert_eq!(LapiUrl::parse("http://h/?startup=true"), Err(InvalidLapiUrl::Query));
    }
}
