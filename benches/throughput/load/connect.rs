//! From an address to a connection that requests can be sent over.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::{fs, io};

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Load;
use crate::job::{Clients, Over};

/// How a load connects.
#[derive(Clone)]
pub(crate) struct Dialer {
    load: &'static Load,
    connector: TlsConnector,
}

impl Dialer {
    pub(crate) fn new(load: &'static Load) -> Self {
        Self { load, connector: TlsConnector::from(Arc::new(client_config(load))) }
    }

    /// A connection of that client.
    pub(crate) async fn tcp(&self, client: u16) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if self.load.job.clients == Clients::Addresses {
            let [high, low] = client.to_be_bytes();
            socket.bind((Ipv4Addr::new(127, 1, high, low), 0).into())?;
        }
        let stream = socket.connect(self.load.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// The same with a full handshake on it.
    pub(crate) async fn tls(&self, client: u16) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(SITE).expect("a name");
        self.connector.connect(name, self.tcp(client).await?).await
    }
}

/// What all of them can do: no one is to win by speaking something else. Nothing is kept to resume with.
fn client_config(load: &Load) -> ClientConfig {
    let provider = CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    };
    let pem = fs::read(&load.site).expect("the certificate of the proxy");
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&pem).expect("a certificate"))
        .expect("a certificate that can be believed");
    let builder = ClientConfig::builder_with_provider(Arc::new(provider));
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).expect("a suite of this version");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    let protocol = if matches!(load.job.over, Over::Http2(_)) { "h2" } else { "http/1.1" };
    config.alpn_protocols = vec![protocol.into()];
    config
}

/// Whose certificate the proxies have.
pub(crate) const SITE: &str = "app.example.com";
