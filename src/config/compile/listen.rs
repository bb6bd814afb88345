//! The `listen` and `admin` sections.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::Compiler;
use super::response::Found;
use crate::admin;
use crate::config::raw::Document;
use crate::config::raw::Spanned;
use crate::config::raw::field::not_built;
use crate::config::raw::server::Listen;

impl Compiler {
    /// Every address, each once.
    pub(super) fn listen(&mut self, document: &Document) -> Vec<Spanned<SocketAddr>> {
        let Some(entries) = document.listen.get() else { return Vec::new() };
        if entries.items.is_empty() && self.mistakes.is_empty() {
            self.mistakes.report(entries.at, "an empty list: nothing would listen", "write `listen: 0.0.0.0:8080`");
        }
        let mut addresses: Vec<Spanned<SocketAddr>> = Vec::new();
        let mut seen: HashMap<SocketAddr, u32> = HashMap::new();
        for entry in &entries.items {
            let address = match entry {
                Listen::Address(address) => address,
                Listen::Described(listener) => {
                    if let Some(Spanned { value: true, at }) = listener.proxy_protocol.get() {
                        let help = "write `false`, or let the proxy in front send X-Forwarded-For";
                        not_built(*at, "proxy_protocol: true", help, &mut self.mistakes);
                    }
                    let Some(address) = listener.address.get() else { continue };
                    address
                }
            };
            // Port 0 is another free port each time.
            let repeated = if address.value.port() == 0 { None } else { seen.insert(address.value, address.at.line) };
            if let Some(line) = repeated {
                let message = format!("`{}` is listened on twice", address.value);
                self.mistakes.report(address.at, message, format!("line {line} has it too: keep one of the two"));
                continue;
            }
            addresses.push(address.clone());
        }
        addresses
    }

    pub(super) fn admin(&mut self, document: &Document, listen: &[Spanned<SocketAddr>]) -> Option<admin::Settings> {
        let admin = document.admin.get()?;
        let token = admin.token_file.get().and_then(|file| self.token(file));
        let Spanned { value: address, at } = *admin.address.get()?;
        if !address.ip().to_canonical().is_loopback() && admin.token_file.is_absent() {
            self.mistakes.report(
                at,
                format!("`{address}` can be reached from other machines, and there is no `token_file`"),
                "write `127.0.0.1`, or add `token_file:` with a file that holds a secret token",
            );
        }
        if address.port() != 0 && listen.iter().any(|other| other.value == address) {
            self.mistakes.report(
                at,
                format!("`{address}` is in `listen` too"),
                "the admin listener needs a port of its own, such as `127.0.0.1:9090`",
            );
        }
        Some(admin::Settings { address, token })
    }

    /// Reads the file with the admin token. What it holds is for the admin API, and for no message.
    fn token(&mut self, file: &crate::config::raw::Text) -> Option<admin::Token> {
        let Found { content, .. } = self.file(file, "token")?;
        let path: PathBuf = file.value.clone().into();
        let lines = content.lines().filter(|line| !line.trim().is_empty()).count();
        let message = match lines {
            0 => format!("the token file `{}` is empty", path.display()),
            1 => return admin::Token::new(&content),
            _ => format!("the token file `{}` has several lines", path.display()),
        };
        self.mistakes.report(file.at, message, "write one line into it, for instance from `openssl rand -hex 32`");
        None
    }
}
