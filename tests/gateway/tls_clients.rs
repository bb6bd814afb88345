//! Client certificates and session resumption.

use std::net::SocketAddr;

use h2::client;
use http::Request;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::http2::ask;
use crate::support::{
    CertificateAuthority, Certified, Gateway, Origin, TlsClientConfig, certificate, eventually, in_time,
};
use crate::tls::{s_client, simple};

/// Everything a gateway needs that lets in only clients of an authority.
struct Site {
    origin: Origin,
    authority: CertificateAuthority,
    clients: CertificateAuthority,
    certified: Certified,
}

impl Site {
    fn new() -> Self {
        let authority = CertificateAuthority::generate();
        let certified = authority.server(&["a.test", "b.test"]);
        Self { origin: Origin::start(), authority, clients: CertificateAuthority::generate(), certified }
    }

    /// One listener for each file of authorities; the empty one lets in everybody.
    fn config(&self, client_cas: &[&str]) -> String {
        let listener = |client_ca: &&str| {
            let client_ca = if client_ca.is_empty() { String::new() } else { format!(", client_ca: {client_ca}") };
            format!("{{address: 127.0.0.1:0, tls: {{certificates: [{{cert: site.pem, key: site.key}}]{client_ca}}}}}")
        };
        let listeners: Vec<String> = client_cas.iter().map(listener).collect();
        format!("listen: [{}]\nupstream: {}\n", listeners.join(", "), self.origin.url())
    }

    fn gateway(&self, client_cas: &[&str]) -> Gateway {
        let (ca, clients) = (self.authority.pem(), self.clients.pem());
        let more = format!("{clients}{}", CertificateAuthority::generate().pem());
        let files = [
            ("ca.pem", ca),
            ("site.pem", &self.certified.cert),
            ("site.key", &self.certified.key),
            ("clients.pem", clients),
            ("more.pem", &more),
        ];
        Gateway::with_files(self.config(client_cas), &files)
    }

    /// A client that shows a certificate of this authority.
    fn caller_of(&self, clients: &CertificateAuthority) -> TlsClientConfig {
        TlsClientConfig::new(&self.authority, Some(&clients.client()))
    }

    fn caller(&self) -> TlsClientConfig {
        self.caller_of(&self.clients)
    }
}

/// The status, or none where the gateway did not let it in.
fn asked(caller: &TlsClientConfig, gateway: &Gateway) -> Option<u16> {
    Some(caller.try_connect(gateway.address(), "a.test").ok()?.try_get("a.test")?.status)
}

#[test]
fn only_clients_with_a_certificate_of_the_authority_are_let_in() {
    let site = Site::new();
    let gateway = site.gateway(&["clients.pem"]);
    assert_eq!(asked(&site.caller(), &gateway), Some(200));
    assert_eq!(asked(&TlsClientConfig::new(&site.authority, None), &gateway), None);
    assert_eq!(asked(&site.caller_of(&site.authority), &gateway), None);
    assert_eq!(asked(&site.caller_of(&CertificateAuthority::generate()), &gateway), None, "only the name is the same");
    assert_eq!(site.origin.count(), 1);
    let told = gateway.stderr().join("\n");
    assert!(!told.contains("certificate") && !told.contains("handshake"), "{told}");
}

#[test]
fn openssl_without_a_certificate_fails_in_the_handshake() {
    let site = Site::new();
    let gateway = site.gateway(&["clients.pem"]);
    for version in ["-tls1_2", "-tls1_3"] {
        let said = s_client(&gateway, &[version, "-servername", "a.test"]);
        assert!(said.contains("alert") && !said.contains("HTTP/1.1"), "{said}");
        let mine = site.clients.client();
        gateway.write("client.pem", &format!("{}{}", mine.cert, mine.key));
        let said = s_client(&gateway, &[version, "-servername", "a.test", "-cert", "client.pem"]);
        assert!(said.contains("HTTP/1.1 200"), "{said}");
    }
    assert_eq!(site.origin.count(), 2);
}

#[test]
fn whoever_was_let_in_for_one_host_may_not_speak_to_another() {
    let site = Site::new();
    let gateway = site.gateway(&["clients.pem", ""]);
    let [strict, open] = gateway.addresses()[..] else { panic!("two listeners") };
    let caller = site.caller();
    let status =
        |address, name: &str, host: &str| caller.connect(address, name).try_get(host).map(|response| response.status);
    assert_eq!(status(strict, "a.test", "A.test:8443"), Some(200));
    assert_eq!(status(strict, "a.test", "b.test"), Some(421));
    eventually("the host it tried is logged", || {
        gateway.stdout().iter().any(|line| line.contains(r#""host":"b.test""#) && line.contains(r#""status":421"#))
    });
    assert_eq!(status(open, "a.test", "b.test"), Some(200));
    assert_eq!(site.origin.count(), 2);
}

#[test]
fn whoever_named_no_host_may_speak_to_an_address_only() {
    let site = Site::new();
    let gateway = site.gateway(&["clients.pem", ""]);
    let [strict, open] = gateway.addresses()[..] else { panic!("two listeners") };
    let caller = site.caller().without_sni();
    let status = |address, host: &str| caller.connect(address, "a.test").try_get(host).map(|response| response.status);
    for (host, expected) in [("127.0.0.1:8443", 200), ("[::1]:8443", 200), ("a.test", 421), ("b.test", 421)] {
        assert_eq!(status(strict, host), Some(expected), "{host}");
    }
    assert_eq!(status(open, "b.test"), Some(200));
    assert_eq!(site.origin.count(), 3);
}

#[test]
fn over_http2_each_request_is_held_to_the_name_of_the_handshake() {
    let site = Site::new();
    let gateway = site.gateway(&["clients.pem"]);
    let connector = TlsConnector::from(site.caller().offering(&["h2"]).config());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(in_time("the conversation ends", async {
        let socket = TcpStream::connect(gateway.address()).await.expect("a connection");
        let stream = connector.connect("a.test".try_into().expect("a name"), socket).await.expect("a handshake");
        let (sender, connection) = client::handshake(stream).await.expect("HTTP/2 is spoken");
        tokio::spawn(connection);
        for (host, status) in [("a.test", 200), ("b.test", 421), ("a.test", 200)] {
            let request = Request::get(format!("https://{host}/")).body(()).expect("a request");
            assert_eq!(ask(&sender, request, None).await.expect("an answer").status, status, "{host}");
        }
    }));
    assert_eq!(site.origin.count(), 2);
}

#[test]
fn connections_are_resumed() {
    let (origin, authority) = (Origin::start(), CertificateAuthority::generate());
    let gateway = simple(&origin, &authority);
    let reconnect = s_client(&gateway, &["-tls1_2", "-servername", "a.test", "-reconnect"]);
    assert_eq!(reconnect.matches("Reused, TLSv1.2").count(), 5, "{reconnect}");
    let without = s_client(&gateway, &["-tls1_2", "-servername", "a.test", "-no_ticket", "-reconnect"]);
    assert_eq!(without.matches("Reused, TLSv1.2").count(), 5, "{without}");
    for version in ["-tls1_2", "-tls1_3"] {
        let first = s_client(&gateway, &[version, "-servername", "a.test", "-sess_out", "session"]);
        assert!(first.contains("New, TLS"), "{first}");
        let second = s_client(&gateway, &[version, "-servername", "a.test", "-sess_in", "session"]);
        assert!(second.contains("Reused, TLS") && second.contains("HTTP/1.1 200"), "{second}");
        assert!(!second.contains("Max Early Data: 1"), "{second}");
    }
}

/// Asks twice there, so that there is something to resume with; whether the second connection was resumed.
#[track_caller]
fn resumes(caller: &TlsClientConfig, address: SocketAddr) -> bool {
    for _ in 0..2 {
        let mut client = caller.connect(address, "a.test");
        let resumed = client.is_resumed();
        assert_eq!(client.get("a.test").status, 200);
        if resumed {
            return true;
        }
    }
    false
}

#[test]
fn what_one_listener_gave_to_resume_with_is_worth_nothing_on_another() {
    let site = Site::new();
    let gateway = site.gateway(&["", "clients.pem", "more.pem"]);
    let [open, strict, more] = gateway.addresses()[..] else { panic!("three listeners") };
    let stranger = TlsClientConfig::new(&site.authority, None);
    assert!(resumes(&stranger, open));
    let got_in = stranger.try_connect(strict, "a.test").ok().and_then(|mut client| client.try_get("a.test"));
    assert!(got_in.is_none());
    let caller = site.caller();
    assert!(resumes(&caller, strict));
    assert!(!caller.connect(more, "a.test").is_resumed());
    assert!(!caller.connect(open, "a.test").is_resumed());
}

#[test]
fn what_was_given_to_resume_with_ends_with_the_authority_and_not_with_the_certificate() {
    let site = Site::new();
    let gateway = site.gateway(&["clients.pem"]);
    let caller = site.caller();
    assert!(resumes(&caller, gateway.address()));
    let renewed = site.authority.server(&["a.test"]);
    gateway.write("site.key", &renewed.key);
    gateway.write("site.pem", &renewed.cert);
    let fresh = || site.caller().connect(gateway.address(), "a.test");
    eventually("the new certificate is shown", || fresh().certificate() == certificate(&renewed.cert));
    assert!(caller.connect(gateway.address(), "a.test").is_resumed());
    let others = CertificateAuthority::generate();
    gateway.write("clients.pem", others.pem());
    eventually("certificates of the old authority are refused", || asked(&caller, &gateway).is_none());
    assert_eq!(asked(&site.caller_of(&others), &gateway), Some(200));
}
