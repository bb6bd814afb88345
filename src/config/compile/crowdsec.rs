//! The keys `crowdsec`: of a list, and of the audit trail.

use std::sync::Arc;
use std::time::Duration;

use super::compiler::Compiler;
use super::files::NamedFile;
use crate::config::raw;
use crate::config::raw::Field;
use crate::config::raw::InvalidValue;
use crate::config::raw::Text;
use crate::crowdsec::Bouncer;
use crate::crowdsec::Lapi;
use crate::crowdsec::LapiUrl;
use crate::crowdsec::ListSource;
use crate::crowdsec::Machine;
use crate::crowdsec::Secret;
use crate::tls::CaCertificates;

impl Compiler {
    /// The source of the list of that name.
    pub(super) fn list_source(&mut self, list: &Arc<str>, raw: &raw::list::FollowedLapi) -> Option<ListSource> {
        let lapi = self.lapi(&raw.url, &raw.ca);
        let key = raw.key_file.get().and_then(|file| self.secret(file, "key", "`cscli bouncers add` prints one"));
        let every = self.span(&raw.every, ListSource::EVERY);
        if let Some(every_at) = raw.every.get()
            && !every.is_zero()
            && !(SHORTEST_EVERY..=LONGEST_EVERY).contains(&every)
        {
            let message = "a Local API is asked at least once an hour and at most once a second";
            self.mistakes.report(every_at.at, message, "write one such as `10s`");
        }
        Some(ListSource { list: Arc::clone(list), bouncer: Bouncer { lapi: lapi?, key: key? }, every })
    }

    /// A machine that reports.
    pub(super) fn machine(&mut self, raw: &raw::record::AlertedLapi) -> Option<Machine> {
        let lapi = self.lapi(&raw.url, &raw.ca);
        let password = raw.password_file.get();
        let password = password.and_then(|file| self.secret(file, "password", "`cscli machines add` sets it"));
        let login = raw.login.get()?;
        if login.value.trim().is_empty() {
            self.mistakes.report(
                login.at,
                "the name of a machine is empty",
                "write the one that `cscli machines list` shows",
            );
        }
        Some(Machine { lapi: lapi?, login: login.value.clone(), password: password? })
    }

    /// A Local API, and how it is verified.
    pub(super) fn lapi(&mut self, url: &Field<Text>, ca: &Field<Text>) -> Option<Lapi> {
        let ca = ca.get().map(|file| self.authorities_of_server(file));
        let text = url.get()?;
        let url = LapiUrl::parse(&text.value).map_err(InvalidValue::from);
        let url =
            url.map_err(|InvalidValue { message, help }| self.mistakes.report_secret(text.at, message, help)).ok()?;
        match ca {
            Some(None) => None,
            ca => Some(Lapi::new(url, ca.flatten())),
        }
    }

    /// The authorities that a server is verified by.
    pub(super) fn authorities_of_server(&mut self, file: &Text) -> Option<CaCertificates> {
        let NamedFile { path, content } = self.file(file, "certificate")?;
        let read = CaCertificates::from_pem(&content);
        let report = |error| {
            let message = format!("cannot use the certificate file `{}`: {error}", path.display());
            self.mistakes.report(file.at, message, "name a PEM file with the certificates of authorities");
        };
        read.map_err(report).ok()
    }

    /// Reads a file with a key or a password. No message shows its content.
    pub(super) fn secret(&mut self, file: &Text, kind: &str, origin: &str) -> Option<Secret> {
        let NamedFile { path, content } = self.file(file, kind)?;
        let lines = content.lines().filter(|line| !line.trim().is_empty()).count();
        let message = match (lines, Secret::new(&content)) {
            (1, Some(secret)) => {
                self.warn_of_readers(file, &path, kind);
                return Some(secret);
            }
            (0, _) => format!("the {kind} file `{}` is empty", file.value),
            (1, None) => {
                format!("the {kind} file `{}` holds no {kind}: it has other characters than ASCII", file.value)
            }
            _ => format!("the {kind} file `{}` has several lines", file.value),
        };
        self.mistakes.report(file.at, message, format!("write the {kind} into it, as one line: {origin}"));
        None
    }
}

const SHORTEST_EVERY: Duration = Duration::from_secs(1);
const LONGEST_EVERY: Duration = Duration::from_secs(3600);
