//! A builder for one request.

use std::net::{IpAddr, SocketAddr};

use super::message::Response;
use super::raw_client::RawClient;

/// A request on its own connection.
#[derive(Clone, Debug)]
#[must_use]
pub struct Request {
    address: SocketAddr,
    source: Option<IpAddr>,
    method: String,
    target: String,
    host: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub fn new(address: SocketAddr, method: &str, target: &str) -> Self {
        Self {
            address,
            source: None,
            method: method.to_owned(),
            target: target.to_owned(),
            host: "app.example".to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Sends it from that loopback address.
    pub fn from(mut self, source: &str) -> Self {
        self.source = Some(source.parse().expect("an address"));
        self
    }

    /// The same request with another target.
    pub fn target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    pub fn host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.host);
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        self.body = Some(body.as_ref().to_vec());
        self.header("Content-Type", content_type)
    }

    pub fn form(self, fields: &str) -> Self {
        self.body("application/x-www-form-urlencoded", fields)
    }

    pub fn json(self, text: &str) -> Self {
        self.body("application/json", text)
    }

    /// The request as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", self.method, self.target, self.host);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if let Some(body) = &self.body {
            head.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    pub fn connect(&self) -> RawClient {
        match self.source {
            Some(source) => RawClient::connect_from(source, self.address),
            None => RawClient::connect(self.address),
        }
    }

    #[track_caller]
    pub fn send(&self) -> Response {
        self.send_on(&mut self.connect())
    }

    /// Sends it on an open connection.
    #[track_caller]
    pub fn send_on(&self, client: &mut RawClient) -> Response {
        client.send(self.bytes()).response_to(&self.method)
    }

    /// Sends it and returns the status of the response.
    #[track_caller]
    pub fn status(&self) -> u16 {
        self.send().status
    }
}
