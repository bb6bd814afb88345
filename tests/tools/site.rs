//! A gateway with a plain listener, and a TLS listener for `a.test`.

use std::net::SocketAddr;

use crate::support::{CertificateAuthority, Certified, Gateway};
use crate::tool::{Said, run};

/// A gateway with two listeners, and who vouches for the second one.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) gateway: Gateway,
    pub(crate) authority: CertificateAuthority,
    pub(crate) plain: SocketAddr,
    pub(crate) secure: SocketAddr,
}

impl Site {
    /// In front of this application, with more of a configuration.
    #[track_caller]
    pub(crate) fn before(application: &str, more: &str) -> Self {
        let authority = CertificateAuthority::generate();
        let Certified { cert, key } = authority.server(&["a.test"]);
        Self::certified(application, more, authority, &[("site.pem", &cert), ("site.key", &key)])
    }

    /// The same, with the certificate in `site.pem`, and other files.
    #[track_caller]
    pub(crate) fn certified(
        application: &str,
        more: &str,
        authority: CertificateAuthority,
        files: &[(&str, &str)],
    ) -> Self {
        let config = format!(
            "listen:\n  - 127.0.0.1:0\n  - address: 127.0.0.1:0\n    \
             tls: {{certificates: [{{cert: site.pem, key: site.key}}]}}\nupstream: {application}\n{more}"
        );
        let ca = [("ca.pem", authority.pem())];
        let gateway = Gateway::with_files(config, &[files, &ca].concat());
        let [plain, secure] = gateway.addresses()[..] else { panic!("two listeners") };
        Self { gateway, authority, plain, secure }
    }

    /// Where a program finds that path: it is told which address `a.test` has, or does not care for names.
    pub(crate) fn url(&self, scheme: &str, path: &str) -> String {
        let port = if scheme == "https" { self.secure.port() } else { self.plain.port() };
        format!("{scheme}://a.test:{port}{path}")
    }

    /// Asks for `path` over `scheme` with curl.
    #[track_caller]
    pub(crate) fn curl(&self, arguments: &[&str], scheme: &str, path: &str) -> Said {
        let ca = self.gateway.path("ca.pem");
        let names = [self.plain, self.secure].map(|at| format!("a.test:{}:127.0.0.1", at.port()));
        let url = self.url(scheme, path);
        let ours =
            ["-sS", "--cacert", ca.to_str().expect("a plain path"), "--resolve", &names[0], "--resolve", &names[1]];
        run(&self.gateway.path("."), "curl", &[&ours, arguments, &[&url]].concat())
    }
}
