//! Applications that speak TLS.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::{HandshakeKind, ServerConfig};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::authority::CertificateAuthority;
use super::background::Background;

/// Terminates TLS in front of an application without TLS.
#[derive(Debug)]
pub struct SecureOrigin {
    address: SocketAddr,
    handshakes: Arc<Handshakes>,
    _background: Background,
}

#[derive(Debug, Default)]
struct Handshakes {
    asked_for: Mutex<Vec<Option<String>>>,
    resumed: AtomicUsize,
}

impl SecureOrigin {
    /// Has a certificate for these names and forwards to `application`.
    pub fn before(application: SocketAddr, authority: &CertificateAuthority, names: &[&str]) -> Self {
        Self::offering(application, authority, names, &[])
    }

    /// The same, with these ALPN protocols.
    pub fn offering(
        application: SocketAddr,
        authority: &CertificateAuthority,
        names: &[&str],
        protocols: &[&str],
    ) -> Self {
        let (certificate, key) = authority.key_pair(names);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the key fits");
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let background = Background::start();
        let listener = background.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let handshakes = Arc::new(Handshakes::default());
        let seen = Arc::clone(&handshakes);
        background.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream, application, Arc::clone(&seen)));
            }
        });
        Self { address, handshakes, _background: background }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The server names (SNI) of completed handshakes.
    pub fn requested_names(&self) -> Vec<Option<String>> {
        self.handshakes.asked_for.lock().expect("no panic here").clone()
    }

    /// How many handshakes resumed a session.
    pub fn resumed(&self) -> usize {
        self.handshakes.resumed.load(Ordering::SeqCst)
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, application: SocketAddr, handshakes: Arc<Handshakes>) {
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let session = stream.get_ref().1;
    if session.handshake_kind() == Some(HandshakeKind::Resumed) {
        handshakes.resumed.fetch_add(1, Ordering::SeqCst);
    }
    handshakes.asked_for.lock().expect("no panic here").push(session.server_name().map(str::to_owned));
    if let Ok(mut behind) = TcpStream::connect(application).await {
        let _ = copy_bidirectional(&mut stream, &mut behind).await;
    }
}
