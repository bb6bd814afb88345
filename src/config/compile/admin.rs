//! The `admin` section.

use super::compiler::Compiler;
use super::files::NamedFile;
use super::listen::ListenEntry;
use crate::admin::AdminSettings;
use crate::admin::Token;
use crate::config::raw::Document;
use crate::config::raw::Spanned;
use crate::config::raw::Text;

impl Compiler {
    pub(super) fn admin(&mut self, document: &Document, listen: &[ListenEntry]) -> Option<AdminSettings> {
        let admin = document.admin.get()?;
        let token = admin.token_file.get().and_then(|file| self.token(file));
        let Spanned { value: address, at } = *admin.address.get()?;
        if !address.ip().to_canonical().is_loopback() && admin.token_file.is_absent() {
            self.mistakes.report(
                at,
                format!("`{address}` can be reached from other machines, and there is no `token_file`"),
                format!(
                    "write `127.0.0.1:{}`, or add `token_file:` with a file that holds a secret token",
                    address.port()
                ),
            );
        }
        if address.port() != 0 && listen.iter().any(|other| other.address.value == address.into()) {
            self.mistakes.report(
                at,
                format!("`{address}` is in `listen` too"),
                "the admin listener needs a port of its own, such as `127.0.0.1:9090`",
            );
        }
        Some(AdminSettings { address, token })
    }

    /// Reads the file with the admin token. No message shows its content.
    fn token(&mut self, file: &Text) -> Option<Token> {
        let NamedFile { path, content } = self.file(file, "token")?;
        let lines = content.lines().filter(|line| !line.trim().is_empty()).count();
        let message = match lines {
            0 => format!("the token file `{}` is empty", file.value),
            1 => {
                self.warn_of_readers(file, &path, "token");
                self.warn_of_token(file, &path, &content);
                return Token::new(&content);
            }
            _ => format!("the token file `{}` has several lines", file.value),
        };
        self.mistakes.report(file.at, message, "write one line into it, for example from `openssl rand -hex 32`");
        None
    }
}
