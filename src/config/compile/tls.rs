//! The `tls` of a listener: reads its files, and checks that they belong together.

use jiff::Timestamp;

use super::compiler::Compiler;
use super::files::ONE_FILE;
use crate::clock::wall;
use crate::config::raw;
use crate::config::raw::Text;
use crate::config::text_file;
use crate::config::text_file::UnreadableFile;
use crate::files::WatchedFile;
use crate::listen::tls::Certificate;
use crate::listen::tls::InvalidCertificate;
use crate::listen::tls::Settings;
use crate::tls::CaCertificates;
use crate::tls::InvalidCaCertificates;

impl Compiler {
    pub(super) fn listener_tls(&mut self, tls: &raw::server::ListenerTls) -> Option<Settings> {
        let client_ca = tls.client_ca.get().and_then(|file| self.authorities(file));
        let files = tls.certificates.get()?;
        if files.items.is_empty() {
            let help = "write `certificates: [{cert: tls/site.pem, key: tls/site.key}]`";
            self.mistakes.report(files.at, "the list of certificates is empty", help);
        }
        let certificates = files.items.iter().filter_map(|files| self.certificate(files)).collect();
        Some(Settings { certificates, client_ca })
    }

    fn certificate(&mut self, files: &raw::server::CertificateFiles) -> Option<Certificate> {
        // Both are read even if one is invalid, so that both are watched and every mistake is reported.
        let chain = files.cert.get().and_then(|file| Some((file, self.pem(file, "certificate")?)));
        let key = files.key.get().and_then(|file| Some((file, self.pem(file, "key")?)));
        let ((cert, chain), (key, secret)) = (chain?, key?);
        match Certificate::from_pem(&chain, &secret) {
            Ok(certificate) => {
                self.check_dates(cert, &certificate);
                Some(certificate)
            }
            Err(error) => {
                self.report_unusable(cert, key, error);
                None
            }
        }
    }

    fn authorities(&mut self, file: &Text) -> Option<CaCertificates> {
        let pem = self.pem(file, "client_ca")?;
        let report_unusable = |error: InvalidCaCertificates| {
            let help = "write a PEM file with `-----BEGIN CERTIFICATE-----`, one for each authority";
            self.mistakes.report(file.at, format!("`{}`: {error}", file.value), help);
        };
        CaCertificates::from_pem(&pem).map_err(report_unusable).ok()
    }

    /// Warns of a certificate that is not valid now. It is served all the same: without it there would be none.
    fn check_dates(&mut self, cert: &Text, certificate: &Certificate) {
        let now = i64::try_from(wall().as_micros()).unwrap_or(i64::MAX);
        let now = Timestamp::from_microsecond(now).unwrap_or(Timestamp::MAX);
        let Certificate { begins, expires, .. } = certificate;
        let name = &cert.value;
        if *expires < now {
            let message = format!("the certificate `{name}` has expired on {expires}, clients will not accept it");
            self.mistakes.warn(cert.at, message, "renew it: the gateway reads it again when the file changes");
        } else if now < *begins {
            let message = format!("the certificate `{name}` is not valid before {begins}, clients will not accept it");
            self.mistakes.warn(
                cert.at,
                message,
                "check the clock of this machine, or use the previous certificate until then",
            );
        }
    }

    fn report_unusable(&mut self, cert: &Text, key: &Text, error: InvalidCertificate) {
        let (file, help) = match error {
            InvalidCertificate::NoCertificate => {
                (cert, "write a PEM file with `-----BEGIN CERTIFICATE-----`, the server's own certificate first")
            }
            InvalidCertificate::Malformed => (cert, "copy the whole file again, or request a new certificate"),
            InvalidCertificate::NoKey => (key, "write a PEM file with `-----BEGIN PRIVATE KEY-----`"),
            InvalidCertificate::EncryptedKey => {
                (key, "the gateway cannot enter a password: remove it with `openssl pkey -in OLD -out NEW`")
            }
            InvalidCertificate::UnsupportedKey => {
                (key, "use ECDSA (P-256, P-384, P-521), Ed25519, or RSA of 2048 to 8192 bits")
            }
            InvalidCertificate::Mismatch => {
                let message = format!("the key `{}` does not belong to the certificate `{}`", key.value, cert.value);
                let help =
                    "name the key of this certificate; the server's own certificate must be the first in its file";
                self.mistakes.report_certificate_mismatch(key.at, message, help);
                return;
            }
        };
        self.mistakes.report(file.at, format!("`{}`: {error}", file.value), help);
    }

    /// Reads a PEM file. No message shows its content.
    fn pem(&mut self, name: &Text, kind: &str) -> Option<String> {
        let path = self.base.join(&name.value);
        self.files.push(WatchedFile::as_it_is(&path));
        let error = match text_file::read_text(&path) {
            Ok(content) if kind == "key" => {
                self.warn_of_readers(name, &path, kind);
                return Some(content);
            }
            Ok(content) => return Some(content),
            Err(error) => error,
        };
        if self.refuse_glob(name, "the path of a file", ONE_FILE) {
            return None;
        }
        let (message, help) = match error {
            UnreadableFile::NotUtf8 { .. } => (
                format!("the {kind} file `{}` is not PEM", path.display()),
                "convert it: `openssl x509 -inform der` for a certificate, `openssl pkey -inform der` for a key",
            ),
            error => (
                format!("cannot read the {kind} file `{}`: {error}", path.display()),
                "check the path, which is relative to the configuration file, and its permissions",
            ),
        };
        self.mistakes.report(name.at, message, help);
        None
    }
}
